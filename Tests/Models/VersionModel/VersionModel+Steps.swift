// SPDX-License-Identifier: Apache-2.0

// The steps of writers, readers and the disk on one machine.

extension VersionModel.Model {
    typealias Machine = VersionModel.Machine
    typealias Mark = VersionModel.Mark

    /// How many units of time a version may be ahead of the wall clock that takes it.
    private static let furthestAhead: UInt8 = 1
    /// How many units of time ahead of the wall clock the floor is if it can't be restored.
    ///
    /// Each of two readings of a wall clock may be wrong by one.
    private static let uncertainty = furthestAhead + 2
    private static let farAhead: UInt8 = 6

    /// Whether no machine with a right clock takes a version now.
    func isOutOfTime(_ version: UInt8, in state: State) -> Bool {
        isFarAhead && version > Self.latest(at: state.now + 1 + Self.furthestAhead)
    }

    // MARK: Clocks

    /// The times that the wall clock of a machine may show.
    func readings(of index: Int, in state: State) -> [UInt8] {
        let usual = [state.now - 1, state.now, state.now + 1]
        return index == 1 && isFarAhead ? usual + [state.now + Self.farAhead] : usual
    }

    private static func earliest(at time: UInt8) -> UInt8 { time << 3 }

    private static func latest(at time: UInt8) -> UInt8 { time << 3 | 7 }

    private func draw(_ index: Int, at reading: UInt8, _ machine: inout Machine) -> UInt8 {
        let wall = Self.earliest(at: reading) | UInt8(index)
        let next = ((machine.clock >> 1) + 1) << 1 | UInt8(index)
        let version = mistake == .wallClockOnly ? max(wall, 2 | UInt8(index)) : max(wall, next)
        moveClock(beyond: version, &machine)
        return version
    }

    func moveClock(beyond version: UInt8, _ machine: inout Machine) {
        if mistake != .clockNotKept { machine.kept = max(machine.kept, version) }
        machine.clock = max(machine.clock, version)
    }

    // MARK: Memory

    private func remember(_ version: UInt8, isRemoval: Bool, _ machine: inout Machine) {
        if mistake == .offForgotten, machine.mode == .off { return }
        if machine.hasOldFile { return }
        machine.seen = max(machine.seen, version)
        machine.isRemovalSeen = isRemoval || machine.isRemovalSeen && mistake != .removalHidden
    }

    /// Whether a version may be taken from a server.
    private func isAcceptable(_ version: UInt8, _ machine: Machine) -> Bool {
        if mistake == .versionUnchecked { return true }
        let entry = mistake == .entryUnchecked ? 0 : machine.entry
        let known = max(entry, machine.seen)
        // The lowest bit is the machine's number.
        let shift: UInt8 = mistake == .machineNumberIgnored ? 1 : 0
        if version <= machine.cleared { return false }
        if known == 0 { return version >> shift > machine.floor >> shift }
        return version >> shift >= known >> shift
    }

    /// Records what a caller on this machine gets to know; returns whether that breaks a promise.
    private func promise(_ version: UInt8, _ machine: inout Machine) -> Bool {
        defer { machine.promised = max(machine.promised, version) }
        return version < machine.promised
    }

    // MARK: Writers

    func addWriter(_ index: Int, _ state: State, _ add: Add) {
        let machine = state[machine: index]
        let mayBegin = machine.isStripeFree || mistake == .drawnBeforeStripe && machine.secondWriter.isNone
        if mayBegin, machine.changesLeft > 0 {
            for reading in readings(of: index, in: state) {
                for isRemoval in [false, true] {
                    add(.draw(index, isRemoval: isRemoval, at: reading)) { state in
                        // Otherwise the servers would not accept this change either.
                        if !begin(index, isRemoval: isRemoval, at: reading, &state[machine: index]) {
                            state.isBroken = true
                        }
                    }
                }
            }
        }
        if !machine.writer.isNone {
            add(.change(index)) { change(index, machine.writer, &$0) }
            add(.killWriter(index)) { endWriter(machine.writer, &$0[machine: index]) }
            if machine.writer.isRemoval, mistake != .removalForgotten {
                // The removal is remembered, and the entry is not deleted.
                add(.killWriter(index)) { state in
                    remember(machine.writer.version, isRemoval: true, &state[machine: index])
                    endWriter(machine.writer, &state[machine: index])
                }
            }
        }
        if !machine.secondWriter.isNone {
            add(.change(index)) { change(index, machine.secondWriter, &$0) }
        }
    }

    private func endWriter(_ writer: Mark, _ machine: inout Machine) {
        if machine.writer == writer { machine.writer = .none } else { machine.secondWriter = .none }
        machine.isNoted = false
    }

    func addClearing(_ index: Int, _ state: State, _ add: Add) {
        guard state.left.clearings > 0 else { return }
        for reading in readings(of: index, in: state) {
            add(.removeAll(index, at: reading)) { state in
                state.left.clearings -= 1
                var machine = state[machine: index]
                let version = draw(index, at: reading, &machine)
                if mistake == .clearedLikeFloor {
                    machine.floor = max(machine.floor, version)
                } else {
                    machine.cleared = version
                }
                machine.entry = 0
                if promise(version, &machine) { state.isBroken = true }
                state[machine: index] = machine
            }
        }
    }

    /// Begins a change; returns whether it is newer than what the sender has found on servers.
    private func begin(_ index: Int, isRemoval: Bool, at reading: UInt8, _ machine: inout Machine) -> Bool {
        machine.changesLeft -= 1
        let version = draw(index, at: reading, &machine)
        if machine.mode == .readWrite { (machine.note, machine.isNoted) = (version, true) }
        let mark = isRemoval ? Mark.removal(version) : .value(version)
        if machine.writer.isNone { machine.writer = mark } else { machine.secondWriter = mark }
        return version > machine.found
    }

    private func change(_ index: Int, _ writer: Mark, _ state: inout State) {
        var machine = state[machine: index]
        let isNoted = machine.isNoted
        endWriter(writer, &machine)
        defer { state[machine: index] = machine }
        if writer.version <= machine.cleared {
            // The removal of all values counts as the later change: its rule hides this value.
            machine.entry = 0
            return
        }
        if writer.isRemoval {
            if mistake != .removalForgotten { remember(writer.version, isRemoval: true, &machine) }
            (machine.entry, machine.removed) = (0, max(machine.removed, writer.version))
        } else {
            machine.entry = writer.version
        }
        if promise(writer.version, &machine) { state.isBroken = true }
        if isNoted { machine.owed = writer.version }
    }

    // MARK: Disk

    func addDisk(_ index: Int, _ state: State, _ add: Add) {
        let machine = state[machine: index]
        if mistake == .evictedWithoutStripe {
            addEvictionWithoutStripe(index, state, add)
        } else if machine.entry != 0, machine.isStripeFree {
            add(.evict(index)) { state in
                if mistake != .evictionForgotten {
                    remember(machine.entry, isRemoval: false, &state[machine: index])
                }
                state[machine: index].entry = 0
            }
            if mistake == .evictionRememberedLate {
                // The process is killed in between.
                add(.evict(index)) { $0[machine: index].entry = 0 }
            }
        }
        guard index == 0 else { return }
        if state.left.drops > 0 { addDrops(index, state, add) }
        if state.left.losses > 0 { addLosses(index, state, add) }
    }

    private func addEvictionWithoutStripe(_ index: Int, _ state: State, _ add: Add) {
        let machine = state[machine: index]
        if machine.evicting == 0 {
            add(.chooseForEviction(index)) { $0[machine: index].evicting = machine.entry }
        } else {
            add(.evict(index)) { state in
                remember(machine.evicting, isRemoval: false, &state[machine: index])
                (state[machine: index].evicting, state[machine: index].entry) = (0, 0)
            }
        }
    }

    private func addDrops(_ index: Int, _ state: State, _ add: Add) {
        let machine = state[machine: index]
        func drop(_ version: UInt8, _ state: inout State) {
            state.left.drops -= 1
            if mistake != .floorNotRaised { state[machine: index].floor = max(machine.floor, version) }
        }
        if machine.seen != 0 {
            add(.drop(index)) { state in
                if machine.isRemovalSeen {
                    drop(machine.seen, &state)
                } else {
                    state.left.drops -= 1
                    // An older value may return, unless it was removed.
                    let rest = max(machine.removed, machine.cleared)
                    state[machine: index].promised = min(machine.promised, rest)
                }
                (state[machine: index].seen, state[machine: index].isRemovalSeen) = (0, false)
            }
        }
        add(.dropOfAnotherKey(index)) { drop(machine.clock, &$0) }
    }

    private func addLosses(_ index: Int, _ state: State, _ add: Add) {
        for loss in VersionModel.Loss.allCases {
            for reading in readings(of: index, in: state) {
                add(.lose(index, loss)) { state in
                    state.left.losses -= 1
                    lose(loss, at: reading, &state[machine: index])
                }
            }
        }
    }

    /// Replaces lost files by new ones.
    private func lose(_ loss: VersionModel.Loss, at reading: UInt8, _ machine: inout Machine) {
        switch loss {
        case .control:
            machine.clock = mistake == .clockNotRestored ? Self.earliest(at: reading) : machine.kept
        case .versions:
            (machine.seen, machine.isRemovalSeen) = (0, false)
            machine.floor = mistake == .floorNotRestored ? 0 : machine.clock
            machine.kept = machine.clock
            machine.hasOldFile = mistake == .oldFileUsed
        case .outbox: loseNotes(&machine)
        case .versionsAndControl, .all:
            (machine.seen, machine.isRemovalSeen) = (0, false)
            let ahead = mistake == .floorAtWallClock ? 0 : Self.uncertainty
            machine.floor = Self.latest(at: reading + ahead)
            (machine.clock, machine.kept) = (machine.floor, machine.floor)
            if loss == .all { loseNotes(&machine) }
        }
    }

    private func loseNotes(_ machine: inout Machine) {
        (machine.note, machine.owed, machine.isNoted) = (0, 0, false)
    }

    // MARK: Readers

    func addReader(_ index: Int, _ state: State, _ add: Add) {
        let machine = state[machine: index]
        if machine.answer.isNone {
            if machine.mode == .off { return }
            // An entry that has expired does not keep a reader from asking.
            for level in 0..<levels where !state[level: level].isNone {
                add(.ask(index, level: level)) { $0[machine: index].answer = state[level: level] }
            }
            return
        }
        if mistake == .adoptedWithoutStripe, machine.isAccepted {
            add(.adopt(index)) { take(machine.answer, index, isStored: true, &$0) }
            return
        }
        // The comparison and the adoption need the stripe.
        guard machine.isStripeFree else { return }
        let answer = machine.answer
        let latest = Self.latest(at: state.now + 1 + Self.furthestAhead)
        let isInTime = answer.version <= latest || mistake == .farAheadTaken
        guard isInTime, isAcceptable(answer.version, machine) else {
            add(.reject(index)) { $0[machine: index].answer = .none }
            return
        }
        if mistake == .adoptedWithoutStripe {
            add(.accept(index)) { $0[machine: index].isAccepted = true }
        } else {
            add(.adopt(index)) { take(answer, index, isStored: true, &$0) }
        }
        // There may be no space for it.
        if !answer.isRemoval, state.left.unstored > 0 {
            add(.returnUnstored(index)) { state in
                state.left.unstored -= 1
                take(answer, index, isStored: false, &state)
            }
        }
    }

    private func take(_ answer: Mark, _ index: Int, isStored: Bool, _ state: inout State) {
        var machine = state[machine: index]
        (machine.answer, machine.isAccepted) = (.none, false)
        if mistake != .clockNotMoved { moveClock(beyond: answer.version, &machine) }
        if answer.isRemoval {
            if mistake != .seenRemovalForgotten { remember(answer.version, isRemoval: true, &machine) }
            (machine.entry, machine.removed) = (0, max(machine.removed, answer.version))
        } else if isStored {
            machine.entry = answer.version
        } else {
            if mistake != .unstoredForgotten { remember(answer.version, isRemoval: false, &machine) }
            if mistake != .olderEntryStays { machine.entry = 0 }
        }
        if promise(answer.version, &machine) { state.isBroken = true }
        state[machine: index] = machine
    }
}
