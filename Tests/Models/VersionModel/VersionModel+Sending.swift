// SPDX-License-Identifier: Apache-2.0

// The steps of the senders and of the servers, and the list of all steps.

extension VersionModel.Model: ExploredModel {
    typealias State = VersionModel.State
    typealias Move = VersionModel.Move
    typealias Add = (Move, (inout State) -> Void) -> Void

    var initialStates: [State] { [State(budget, changes: changes)] }

    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        if state.isBroken { return }
        func add(_ move: Move, _ advance: (inout State) -> Void) {
            var copy = state
            advance(&copy)
            guard copy != state else { return }
            next.append(copy)
            moves.append(move)
        }
        for index in 0..<2 {
            addWriter(index, state, add)
            addDisk(index, state, add)
            addReader(index, state, add)
            addSender(index, state, add)
        }
        addClearing(0, state, add)
        addModes(0, state, add)
        addServers(state, add)
        if state.left.ticks > 0 {
            add(.time) { state in
                state.left.ticks -= 1
                state.now += 1
            }
        }
    }

    private func addModes(_ index: Int, _ state: State, _ add: Add) {
        guard state.left.modes > 0 else { return }
        for mode in VersionModel.Mode.allCases where mode != state[machine: index].mode {
            add(.mode(index, mode)) { state in
                state.left.modes -= 1
                state[machine: index].mode = mode
            }
        }
    }

    private func addServers(_ state: State, _ add: Add) {
        if !state.late.isNone {
            add(.lateRequest) { state in
                let (late, level, base) = (state.late, Int(state.lateLevel), state.lateBase)
                (state.late, state.lateLevel, state.lateBase) = (.none, 0, 0)
                if isConditionMet(base, state[level: level]) {
                    carryOut(late, level, isCompared: isComparing, &state)
                }
            }
        }
        guard state.left.lostValues > 0 else { return }
        for level in 0..<levels { add(.loseValue(level: level)) { loseValue(level, &$0) } }
    }

    /// Whether a server compares the version of a request itself.
    private var isComparing: Bool { server == .comparing && mistake != .comparedBeforehand }

    /// Whether a server carries out a request whose sender has found the version `base` there.
    private func isConditionMet(_ base: UInt8, _ present: Mark) -> Bool {
        server != .conditional || mistake == .comparedBeforehand || base == present.version
    }

    // MARK: Sender

    private func addSender(_ index: Int, _ state: State, _ add: Add) {
        let machine = state[machine: index]
        switch machine.sender {
        case .idle:
            guard machine.mode == .readWrite, machine.isStripeFree || mistake == .noBarrier else { return }
            if machine.note != 0 {
                let isGone = machine.entry < machine.note && mistake != .olderEntrySent
                let mark = isGone || machine.entry == 0 ? Mark.removal(machine.note) : .value(machine.entry)
                add(.send(index)) { start(mark, number: machine.note, &$0[machine: index]) }
            }
            if levels == 2, machine.entry != 0 {
                let isLacking = state[level: 0].isNone
                if isLacking || mistake != .fillUnconditional {
                    add(.fill(index)) { start(.value(machine.entry), number: 0, &$0[machine: index]) }
                }
            }
        case .compare: add(.compare(index)) { compare(index, &$0) }
        case .tell: add(.tell(index)) { tell(index, &$0) }
        }
        if machine.sender == .tell, state.late.isNone, state.left.lateRequests > 0 {
            add(.giveUp(index)) { state in
                state.left.lateRequests -= 1
                (state.late, state.lateLevel) = (machine.request, machine.level)
                if server == .conditional { state.lateBase = machine.base }
                rest(&state[machine: index])
            }
        }
    }

    /// Whether a server's version is replaced by any other, as no machine takes it.
    private func isReplaced(_ present: UInt8, in state: State) -> Bool {
        isOutOfTime(present, in: state) && mistake != .farAheadKept
    }

    /// Whether a server keeps a version that no machine takes, instead of a request.
    private func isKeptInVain(_ stored: UInt8, _ request: Mark, in state: State) -> Bool {
        stored != request.version && isOutOfTime(stored, in: state)
    }

    /// Reads the server's version.
    private func compare(_ index: Int, _ state: inout State) {
        let machine = state[machine: index]
        let level = Int(machine.level)
        let present = state[level: level].version
        if present >= machine.request.version, !isReplaced(present, in: state), mistake != .plainNotRead {
            find(present, &state[machine: index])
            advance(index, &state)
        } else {
            state[machine: index].sender = .tell
            state[machine: index].base = server == .plain ? state[lastOn: level] : present
        }
    }

    private func tell(_ index: Int, _ state: inout State) {
        let machine = state[machine: index]
        let level = Int(machine.level)
        if server == .plain, machine.base > machine.request.version, !isOutOfTime(machine.base, in: state) {
            state.isBroken = true
        }
        guard isConditionMet(machine.base, state[level: level]) else {
            if mistake == .conflictTakenAsDone {
                advance(index, &state)
            } else {
                (state[machine: index].sender, state[machine: index].base) = (.compare, 0)
            }
            return
        }
        let isFill = machine.number == 0
        let isCompared = isComparing && !(isFill && mistake == .fillUnconditional)
        carryOut(machine.request, level, isCompared: isCompared, &state)
        let stored = state[level: level].version
        if checksServers, stored < machine.request.version || isKeptInVain(stored, machine.request, in: state)
        {
            state.isBroken = true
        }
        if isComparing, !isOutOfTime(stored, in: state) { find(stored, &state[machine: index]) }
        advance(index, &state)
    }

    /// Moves the clock beyond the version that a server has instead of the request's.
    private func find(_ version: UInt8, _ machine: inout Machine) {
        if version <= machine.request.version { return }
        machine.found = max(machine.found, version)
        if mistake != .clockNotMovedBySender { moveClock(beyond: version, &machine) }
    }

    private func start(_ request: Mark, number: UInt8, _ machine: inout Machine) {
        (machine.request, machine.number) = (request, number)
        machine.sender = isComparing ? .tell : .compare
    }

    /// Continues with the next level, or strikes out the note.
    private func advance(_ index: Int, _ state: inout State) {
        var machine = state[machine: index]
        machine.base = 0
        let isStruck = machine.level == levels - 1 || mistake == .struckAfterFirstLevel
        if machine.number != 0, isStruck,
            machine.note == machine.number || mistake == .struckWithoutNumber
        {
            machine.note = 0
        }
        if machine.number == 0 || Int(machine.level) == levels - 1 {
            rest(&machine)
        } else {
            machine.level += 1
            machine.sender = isComparing ? .tell : .compare
        }
        state[machine: index] = machine
    }

    private func rest(_ machine: inout Machine) {
        (machine.request, machine.number, machine.level, machine.base) = (.none, 0, 0, 0)
        machine.sender = .idle
    }

    // MARK: Server

    private func carryOut(_ request: Mark, _ level: Int, isCompared: Bool, _ state: inout State) {
        let present = state[level: level].version
        if isCompared {
            let isOld = mistake == .machineNumberIgnored && request.version >> 1 == present >> 1
            if request.version <= present && !isReplaced(present, in: state) || isOld { return }
        }
        let last = state[lastOn: level]
        if checksServers, request.version < last, !isOutOfTime(last, in: state) { state.isBroken = true }
        state[lastOn: level] = request.version
        state[level: level] = request.isRemoval && mistake == .removalDeletes ? .none : request
    }

    private func loseValue(_ level: Int, _ state: inout State) {
        state.left.lostValues -= 1
        state[level: level] = .none
        // The level may accept older values from now on.
        state[lastOn: level] = 0
        for index in 0..<2 { state[machine: index].owed = 0 }
    }

    // MARK: Checks

    func isBroken(_ state: State) -> Bool {
        if state.isBroken { return true }
        for index in 0..<2 {
            let machine = state[machine: index]
            if machine.entry != 0, machine.entry < machine.promised { return true }
        }
        guard checksServers else { return false }
        // If the server loses a value that was evicted and taken back, a removal of it may be sent afterwards.
        if levels == 1, budget.lostValues == 0, state[level: 0].isRemoval {
            for index in 0..<2 where state[machine: index].entry == state[level: 0].version { return true }
        }
        for index in 0..<2 where state[machine: index].note == 0 {
            if isOutOfTime(state[machine: index].owed, in: state) { continue }
            for level in 0..<levels
            where max(state[level: level].version, state[lastOn: level]) < state[machine: index].owed {
                return true
            }
        }
        return false
    }

    func explore() -> Exploration<State> { StateSpace.explore(self, until: isBroken) }

    // MARK: Descriptions

    func line(for move: Move, from before: State, to after: State) -> String {
        "\(move)  => \(summary(of: after))"
    }

    func summary(of state: State) -> String {
        let machines = (0..<2).map { index in
            let machine = state[machine: index]
            return "(entry \(name(machine.entry)), seen \(name(machine.seen)), floor \(name(machine.floor)), "
                + "clock \(name(machine.clock)), kept \(name(machine.kept)), note \(name(machine.note)), "
                + "writer \(name(machine.writer)), answer \(name(machine.answer)), \(machine.mode), "
                + "\(machine.sender) \(name(machine.request)), promised \(name(machine.promised)))"
        }
        let servers = (0..<levels).map { name(state[level: $0]) }
        return
            "time \(state.now) servers \(servers) late \(name(state.late)) \(machines.joined(separator: " "))"
    }

    private func name(_ version: UInt8) -> String {
        version == 0 ? "-" : "\(version >> 3).\(version >> 1 & 3)\(version & 1 == 0 ? "a" : "b")"
    }

    private func name(_ mark: Mark) -> String { (mark.isRemoval ? "removal " : "") + name(mark.version) }
}
