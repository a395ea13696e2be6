// SPDX-License-Identifier: Apache-2.0

import CSimulator
import Dispatch
import Glibc
import TestSupport

/// Simulated processes that share a simulated kernel, and the scheduler, which uses a seed to choose the next process.
///
/// Exactly one process runs at a time, and only that one changes the world. So nothing here needs a lock.
final class World {
    /// The world of the run in progress; the handler of calls finds it here.
    nonisolated(unsafe) static var present: World?

    /// Makes the calls of simulated processes go to the world of the run in progress.
    static func takeCalls() {
        simulator_set_handler { call, arguments in
            guard let world = World.present, let arguments else { return -Int(ENOSYS) }
            return world.make(simulator_call(UInt32(call)), arguments)
        }
    }

    let profile: Profile
    let kernel: SimulatedKernel
    private(set) var processes: [SimulatedProcess] = []
    private(set) var running: SimulatedProcess?
    private var generator: SeededGenerator
    /// The nanoseconds since the machine's start.
    private(set) var now: Int64 = 1_000_000_000_000
    /// The wall clock's time at the machine's start.
    private var start: Int64 = 1_700_000_000_000_000_000
    /// Whether the wall clock steps back, and not forward.
    private var setsClockBack = false
    /// The sum of all steps of the wall clock into the past, in nanoseconds.
    private(set) var setBack: Int64 = 0
    private(set) var steps = 0
    /// The mean time of a call in nanoseconds: the longer it is, the fewer calls other processes make during a sleep.
    private let callTime: Int
    /// A hash of all steps: equal for equal runs.
    private(set) var fingerprint: UInt64 = 0xcbf2_9ce4_8422_2325
    private(set) var kills = 0
    /// The number of files that ``damage()`` has damaged or removed.
    private(set) var damages = 0
    /// How often the whole directory was removed.
    private(set) var removals = 0
    /// Whether an old file got its name again, or the whole directory was removed: then a get may return an old value.
    private(set) var hasLostOrder = false
    private(set) var switches = 0
    /// The calls before which the running process loses its priority, counted among the interesting ones.
    private var changes: [Int] = []
    private var interestingCalls = 0
    /// The calls at which a given schedule can intervene, so far.
    private(set) var points = 0
    private var interventions: ArraySlice<Profile.Intervention> = []
    private let end = DispatchSemaphore(value: 0)
    /// Whether each step is printed.
    var isTracing = false
    /// Whether processes may be killed or stopped, and calls may fail; false while a run is prepared and checked.
    var isHostile = false
    /// The promises that were broken, and at which steps.
    private(set) var violations: [String] = []
    /// The number of steps after which a run counts as endless.
    private static let mostSteps = 20_000_000
    /// The length of the tick by which the kernel dates files.
    private static let tick: Int64 = 4_000_000

    init(seed: UInt64, profile: Profile) {
        self.profile = profile
        generator = SeededGenerator(seed: seed)
        callTime = [5_000, 50_000, 500_000][Int(generator.next() % 3)]
        kernel = SimulatedKernel(now: 1_700_000_000_000_000_000)
        kernel.keepsFormerNames = profile.putsBackOneIn > 0
        if case .priorities(let count) = profile.schedule {
            changes = (0..<count).map { _ in draw(profile.processes * profile.operations * 8) }
        }
        setsClockBack = profile.clockStepsOneIn > 0 && draw(2) == 0
        if case .given(let list) = profile.schedule { interventions = list[...] }
    }

    /// Returns a number from 0 to `bound` - 1.
    func draw(_ bound: Int) -> Int { bound <= 1 ? 0 : Int(generator.next() % UInt64(bound)) }

    func isDue(oneIn count: Int) -> Bool { count > 0 && draw(count) == 0 }

    /// The wall clock.
    var wallTime: Int64 { start + now }

    func report(_ violation: String) {
        violations.append("step \(steps): \(violation)")
        if isTracing { say("VIOLATION: \(violation)") }
    }

    func say(_ text: @autoclosure () -> String) {
        guard isTracing else { return }
        let name = running.map { "\($0.identifier)" } ?? "-"
        print("\(steps) \(String(format(now))) [\(name)] \(text())")
    }

    private func format(_ time: Int64) -> String { "\((time - 1_000_000_000_000) / 1000)µs" }

    // MARK: Processes

    /// Runs the bodies as one process each, until all have ended or are killed.
    ///
    /// A process that is killed is replaced by what `replacement` returns, if anything.
    func run(
        _ bodies: [(SimulatedProcess) -> Void],
        replacement: @escaping (SimulatedProcess) -> ((SimulatedProcess) -> Void)? = { _ in nil }
    ) {
        self.replacement = replacement
        for body in bodies { add(body) }
        // The first choice is made here, the others by the processes.
        running = nil
        choose()?.turn.signal()
        end.wait()
    }

    private var replacement: (SimulatedProcess) -> ((SimulatedProcess) -> Void)? = { _ in nil }

    private final class Beginning {
        let process: SimulatedProcess
        let body: (SimulatedProcess) -> Void

        init(_ process: SimulatedProcess, _ body: @escaping (SimulatedProcess) -> Void) {
            self.process = process
            self.body = body
        }
    }

    private func add(_ body: @escaping (SimulatedProcess) -> Void) {
        let process = SimulatedProcess(identifier: Int32(100 + processes.count), seed: generator.next())
        process.priority = draw(1 << 20)
        processes.append(process)
        let context = Unmanaged.passRetained(Beginning(process, body)).toOpaque()
        let error = simulator_start(
            process.identifier,
            { context in
                guard let context else { return }
                let beginning = Unmanaged<Beginning>.fromOpaque(context).takeRetainedValue()
                beginning.process.turn.wait()
                beginning.body(beginning.process)
                World.present?.finish(beginning.process)
            },
            context
        )
        precondition(error == 0, "no thread could be made: error \(error)")
    }

    private func finish(_ process: SimulatedProcess) {
        process.state = .ended
        kernel.fileTime = fileTime
        kernel.end(process)
        say("ends")
        handOver()
    }

    /// Lets another process go on; the caller's thread ends, or waits for its turn.
    private func handOver() {
        if let next = choose() { next.turn.signal() } else { end.signal() }
    }

    private var longestPast: Int64 = 0

    /// The longest time, in nanoseconds, that a process which could run has not run.
    var longestWait: Int64 {
        processes.reduce(longestPast) { max($0, $1.isAlive ? now - ($1.readySince ?? now) : 0) }
    }

    /// Chooses the process that goes on, after time has passed if all wait; returns nil if none is alive.
    ///
    /// With given interventions the process that runs is preferred, but not `excluded`.
    private func choose(otherThan excluded: SimulatedProcess? = nil) -> SimulatedProcess? {
        while true {
            let alive = processes.filter(\.isAlive)
            guard !alive.isEmpty else { return nil }
            var ready: [SimulatedProcess] = []
            var soonest = Int64.max
            for process in alive {
                if case .waiting(let time) = process.state {
                    if time > now {
                        soonest = min(soonest, time)
                        continue
                    }
                    process.state = .ready
                    process.readySince = time
                }
                process.readySince = process.readySince ?? now
                ready.append(process)
            }
            if ready.isEmpty {
                now = soonest
                continue
            }
            switch profile.schedule {
            case .random: running = ready[draw(ready.count)]
            case .priorities: running = ready.max { $0.priority < $1.priority }
            case .given:
                let others = ready.filter { $0 !== excluded }
                running = others.first { $0 === running } ?? others.first ?? excluded
            }
            longestPast = longestWait
            running?.readySince = nil
            return running
        }
    }

    /// Lets another process go on if it is chosen, and returns when this one is chosen again.
    private func yield(_ process: SimulatedProcess, otherThan excluded: SimulatedProcess? = nil) {
        guard let next = choose(otherThan: excluded), next !== process else { return }
        switches += 1
        next.turn.signal()
        process.turn.wait()
    }

    /// Damages or removes one entry or object, as a user or a failing medium does.
    private func damage() {
        guard let root = kernel.file(Simulation.path) else { return }
        kernel.fileTime = fileTime
        let shards = ["objects", "entries"].compactMap { root.names[$0] }.flatMap(\.names.values)
        let files = shards.flatMap { shard in shard.names.map { (shard, $0.key, $0.value) } }.sorted {
            $0.1 < $1.1
        }
        guard !files.isEmpty else { return }
        let (directory, name, file) = files[draw(files.count)]
        damages += 1
        switch draw(3) {
        case 0: kernel.remove(name, of: directory)
        case 1: kernel.cut(file, to: file.size / 2)
        default: file.flip(draw(max(1, file.size)))
        }
        say("\(name) is damaged")
    }

    /// Makes the control file one of another layout, which the next process that opens the cache replaces.
    func damageControl() {
        guard let file = kernel.file(Simulation.path + "/control") else { return }
        kernel.fileTime = fileTime
        file.flip(0)
        say("the control file is unusable")
    }

    /// Steps the wall clock: in some runs forward, in the others back.
    ///
    /// Not both, because a step forward hides a step back from a collection: *Sharing between processes* says so.
    private func stepClock() {
        let length = [10_000_000, 2_000_000_000, 90_000_000_000, 3_600_000_000_000, 30 * 86_400_000_000_000][
            draw(5)
        ]
        let step = Int64(setsClockBack ? -length : length)
        start += step
        if step < 0 { setBack -= step }
        say("the clock steps by \(step / 1_000_000) ms")
    }

    /// Gives an old file its name again, as a restored backup does.
    private func putBack() {
        guard !kernel.formerNames.isEmpty else { return }
        kernel.fileTime = fileTime
        let (name, directory, file) = kernel.formerNames[draw(kernel.formerNames.count)]
        kernel.putBack(file, as: name, in: directory)
        (damages, hasLostOrder) = (damages + 1, true)
        say("\(name) is put back")
    }

    /// Removes the whole directory, as a user does with `rm -rf`.
    private func removeDirectory() {
        guard let parent = kernel.file("/tmp") else { return }
        kernel.fileTime = fileTime
        kernel.removeTree("cache", of: parent)
        removals += 1
        (damages, hasLostOrder) = (damages + 1, true)
        say("the directory is removed")
    }

    private func kill(_ process: SimulatedProcess) {
        say("is killed")
        kills += 1
        process.state = .killed
        kernel.fileTime = fileTime
        kernel.end(process)
        if let body = replacement(process) { add(body) }
        handOver()
        // The thread is never resumed, so the process executes nothing more.
        while true { process.turn.wait() }
    }

    // MARK: Calls

    private var fileTime: Int64 { wallTime / Self.tick * Self.tick }

    /// Makes a call of the running process.
    private func make(_ call: simulator_call, _ arguments: UnsafePointer<Int>) -> CallResult {
        guard let process = running else { return -Int(ENOSYS) }
        switch call {
        case SIMULATOR_CLOCK: return time(Int32(arguments[0]))
        case SIMULATOR_RANDOM:
            // Swift's runtime asks for no bytes first, to see whether the call exists.
            guard let buffer = UnsafeMutableRawPointer(bitPattern: arguments[0]) else { return 0 }
            for index in 0..<arguments[1] {
                buffer.storeBytes(
                    of: UInt8(truncatingIfNeeded: process.generator.next()),
                    toByteOffset: index,
                    as: UInt8.self
                )
            }
            return arguments[1]
        case SIMULATOR_UNMAP:
            return kernel.unmap(UInt(bitPattern: arguments[0]), process)
        case SIMULATOR_UNKNOWN:
            report(
                "a call that the simulator lacks: \(Self.string(arguments[0]))"
            )
            return -Int(ENOSYS)
        case SIMULATOR_SLEEP:
            say("sleeps for \(arguments[0] / 1000) µs")
            process.state = .waiting(until: now + Int64(max(1, arguments[0])))
            step(call, process)
            yield(process)
            return 0
        case SIMULATOR_WORD where !isHostile, SIMULATOR_STORE where !isHostile:
            // The only process: nothing can happen in between.
            return 0
        default: break
        }
        pass(call, process)
        process.calls[Int(call.rawValue)] += 1
        if call == SIMULATOR_WORD || call == SIMULATOR_STORE { return 0 }
        if let error = fault(call, process) {
            process.faults += 1
            say("\(call.name) fails: error \(error)")
            return -Int(error)
        }
        kernel.fileTime = fileTime
        let result = perform(call, arguments, process)
        // A full disk explains a failed operation.
        if result == -Int(ENOSPC) { process.faults += 1 }
        // An address differs from run to run.
        let shown = call == SIMULATOR_MAP ? min(result, 0) : result
        note(UInt64(bitPattern: Int64(shown)))
        say("\(call.name)(\(Self.text(call, arguments))) = \(shown)")
        return result
    }

    private func step(_ call: simulator_call, _ process: SimulatedProcess) {
        steps += 1
        if steps == Self.mostSteps { fatalError("the run does not end: \(profile.name)") }
        now += call == SIMULATOR_WORD || call == SIMULATOR_STORE ? 50 : Int64(callTime / 2 + draw(callTime))
        note(UInt64(call.rawValue) << 32 | UInt64(process.identifier))
    }

    private func note(_ value: UInt64) {
        fingerprint = (fingerprint ^ value) &* 0x0000_0100_0000_01b3
    }

    /// A point at which another process may go on, and this one may be killed or stopped.
    private func pass(_ call: simulator_call, _ process: SimulatedProcess) {
        step(call, process)
        if isHostile {
            if kills < profile.mostKills, isDue(oneIn: profile.killsOneIn) { kill(process) }
            if isDue(oneIn: profile.damageOneIn) { damage() }
            if isDue(oneIn: profile.clockStepsOneIn) { stepClock() }
            if isDue(oneIn: profile.putsBackOneIn) { putBack() }
            if removals < profile.mostRemovals, isDue(oneIn: profile.removalsOneIn) { removeDirectory() }
            if isDue(oneIn: profile.stopsOneIn) {
                let duration = Int64(1 + draw(20)) * 100_000_000
                say("is stopped for \(duration / 1_000_000) ms")
                process.state = .waiting(until: now + duration)
                return yield(process)
            }
        }
        if case .given = profile.schedule { return intervene(process) }
        guard isInteresting(call, process) else { return }
        switch profile.schedule {
        case .random(let perMille):
            if draw(1000) < perMille { yield(process) }
        case .priorities:
            interestingCalls += 1
            if changes.contains(interestingCalls) {
                process.priority = -steps
                yield(process)
            }
        case .given: break
        }
    }

    /// Carries out the schedule's intervention at this point, if there is one.
    private func intervene(_ process: SimulatedProcess) {
        guard isHostile, process.runsProgram else { return }
        points += 1
        guard let next = interventions.first, next.point == points else { return }
        interventions.removeFirst()
        switch next.kind {
        case .kill: kill(process)
        case .change: yield(process, otherThan: process)
        }
    }

    /// Decides whether another process may go on before this call.
    ///
    /// A fault needs a change of one process between two calls of another one. So processes are interrupted mostly before
    /// they change something themselves. Each repetition of a call within an operation makes an interruption before it
    /// rarer: a collection makes a thousand calls for each one that matters, and if all of them were interrupted, the
    /// other processes would end during the first collection.
    private func isInteresting(_ call: simulator_call, _ process: SimulatedProcess) -> Bool {
        let number = process.callsInOperation[Int(call.rawValue)]
        process.callsInOperation[Int(call.rawValue)] = number + 1
        return draw((call.isChange ? 4 : 64) + number) < 4
    }

    private func time(_ clock: Int32) -> Int {
        now += 30
        switch clock {
        case CLOCK_REALTIME: return Int(wallTime)
        case CLOCK_REALTIME_COARSE: return Int(fileTime)
        default: return Int(now)
        }
    }

    /// The errors that a call may have, one of which is drawn; nil if the call succeeds.
    private func fault(_ call: simulator_call, _ process: SimulatedProcess) -> Int32? {
        guard isHostile, isDue(oneIn: profile.faultsOneIn) else { return nil }
        let errors: [Int32] =
            switch call {
            case SIMULATOR_OPEN: [EMFILE, ENFILE, ENOMEM, EIO, EINTR]
            case SIMULATOR_READ: [EIO, EINTR]
            case SIMULATOR_WRITE: [ENOSPC, EDQUOT, EIO, EINTR]
            case SIMULATOR_STATUS, SIMULATOR_LIST, SIMULATOR_GET_ATTRIBUTE: [EIO, ENOMEM]
            case SIMULATOR_TRUNCATE, SIMULATOR_ALLOCATE: [ENOSPC, EIO]
            case SIMULATOR_MAKE_DIRECTORY, SIMULATOR_LINK, SIMULATOR_RENAME, SIMULATOR_SET_ATTRIBUTE:
                [ENOSPC, EDQUOT, EIO]
            case SIMULATOR_UNLINK, SIMULATOR_REMOVE_ATTRIBUTE, SIMULATOR_SET_TIMES: [EIO]
            case SIMULATOR_LOCK, SIMULATOR_LOCK_RANGE: [ENOLCK, EINTR]
            case SIMULATOR_MAP: [ENOMEM]
            default: []
            }
        return errors.isEmpty ? nil : errors[draw(errors.count)]
    }

    private func perform(_ call: simulator_call, _ a: UnsafePointer<Int>, _ process: SimulatedProcess)
        -> CallResult
    {
        func path(_ index: Int) -> String { Self.string(a[index]) }
        func memory(_ index: Int) -> UnsafeMutableRawPointer {
            guard let memory = UnsafeMutableRawPointer(bitPattern: a[index]) else {
                preconditionFailure("no buffer")
            }
            return memory
        }
        switch call {
        case SIMULATOR_OPEN:
            return kernel.open(
                a[0],
                path(1),
                Int32(truncatingIfNeeded: a[2]),
                UInt32(truncatingIfNeeded: a[3]),
                process
            )
        case SIMULATOR_CLOSE: return kernel.close(a[0], process)
        case SIMULATOR_READ:
            if a[2] == 0 { return 0 }
            return kernel.read(a[0], memory(1), shortened(a[2]), at: a[3], process)
        case SIMULATOR_WRITE:
            if a[2] == 0 { return 0 }
            return kernel.write(a[0], memory(1), shortened(a[2]), at: a[3], process)
        case SIMULATOR_SEEK: return kernel.seek(a[0], a[1], Int32(a[2]), process)
        case SIMULATOR_STATUS:
            let (file, error) = kernel.status(a[0], path(1), Int32(a[3]), process)
            guard let file else { return error }
            memory(2).assumingMemoryBound(to: stat.self).pointee = stat(file)
            return 0
        case SIMULATOR_BIRTH_TIME:
            guard let file = process.description(a[0])?.file else { return -Int(EBADF) }
            memory(1).storeBytes(of: file.born, as: Int64.self)
            return 0
        case SIMULATOR_FILE_SYSTEM_KIND:
            memory(1).storeBytes(of: SimulatedKernel.magic, as: Int64.self)
            memory(1).storeBytes(of: Int64(SimulatedFile.pageSize), toByteOffset: 8, as: Int64.self)
            return 0
        case SIMULATOR_FILE_SYSTEM_SPACE:
            let values = [SimulatedFile.pageSize, kernel.capacity, max(0, kernel.capacity - kernel.used)]
            for (index, value) in values.enumerated() {
                memory(1).storeBytes(of: value, toByteOffset: index * 8, as: Int.self)
            }
            return 0
        case SIMULATOR_SYNCHRONIZE: return process.description(a[0]) == nil ? -Int(EBADF) : 0
        case SIMULATOR_TRUNCATE: return kernel.truncate(a[0], to: a[1], process)
        case SIMULATOR_ALLOCATE: return kernel.allocate(a[0], a[1]..<a[1] + a[2], process)
        case SIMULATOR_MAKE_DIRECTORY: return kernel.makeDirectory(a[0], path(1), UInt32(a[2]), process)
        case SIMULATOR_LINK: return kernel.link(a[0], path(1), a[2], path(3), Int32(a[4]), process)
        case SIMULATOR_RENAME: return kernel.rename(a[0], path(1), a[2], path(3), process)
        case SIMULATOR_UNLINK: return kernel.unlink(a[0], path(1), Int32(a[2]), process)
        case SIMULATOR_LIST: return kernel.list(a[0], memory(1), a[2], process)
        case SIMULATOR_GET_ATTRIBUTE:
            let (file, error) = kernel.status(a[0], path(1), path(1).isEmpty ? 0x1000 : 0, process)
            guard let file else { return error }
            return kernel.attribute(file, path(2), UnsafeMutableRawPointer(bitPattern: a[3]), a[4])
        case SIMULATOR_SET_ATTRIBUTE:
            guard let file = process.description(a[0])?.file else { return -Int(EBADF) }
            let value = a[3] == 0 ? [] : Array(UnsafeRawBufferPointer(start: memory(2), count: a[3]))
            return kernel.setAttribute(file, path(1), to: value)
        case SIMULATOR_REMOVE_ATTRIBUTE:
            guard let file = process.description(a[0])?.file else { return -Int(EBADF) }
            return kernel.removeAttribute(file, path(1))
        case SIMULATOR_SET_TIMES:
            let (file, error) = kernel.status(a[0], path(1), path(1).isEmpty ? 0x1000 : 0, process)
            guard let file else { return error }
            kernel.setTimes(file, UnsafePointer<timespec>(bitPattern: a[2]))
            return 0
        case SIMULATOR_CHANGE_MODE:
            guard let file = process.description(a[0])?.file else { return -Int(EBADF) }
            file.mode = UInt32(a[1]) & 0o7777
            file.changed = kernel.fileTime
            return 0
        case SIMULATOR_CHANGE_OWNER: return process.description(a[0]) == nil ? -Int(EBADF) : 0
        case SIMULATOR_DESCRIPTOR_FLAGS:
            guard let description = process.description(a[0]) else { return -Int(EBADF) }
            return Int(description.flags)
        case SIMULATOR_DUPLICATE:
            guard let description = process.description(a[0]) else { return -Int(EBADF) }
            description.descriptors += 1
            return process.add(description)
        case SIMULATOR_LOCK: return kernel.lock(a[0], Int32(a[1]), process)
        case SIMULATOR_LOCK_RANGE: return kernel.lockRange(a[0], a[1], unlocks: a[2] != 0, process)
        case SIMULATOR_MAP: return kernel.map(a[0], a[1], process)
        default: return -Int(ENOSYS)
        }
    }

    /// A call may move fewer bytes than it is asked to.
    private func shortened(_ count: Int) -> Int {
        guard isHostile, profile.faultsOneIn > 0, count > 1, draw(20) == 0 else { return count }
        return 1 + draw(count)
    }

    /// Returns the text at an address.
    private static func string(_ address: Int) -> String {
        UnsafePointer<CChar>(bitPattern: address).map { String(cString: $0) } ?? ""
    }

    private static func text(_ call: simulator_call, _ a: UnsafePointer<Int>) -> String {
        func path(_ index: Int) -> String { "\"\(string(a[index]))\"" }
        switch call {
        case SIMULATOR_OPEN: return "\(a[0]), \(path(1)), 0o\(String(a[2], radix: 8))"
        case SIMULATOR_STATUS, SIMULATOR_MAKE_DIRECTORY, SIMULATOR_UNLINK, SIMULATOR_SET_TIMES,
            SIMULATOR_GET_ATTRIBUTE:
            return "\(a[0]), \(path(1))"
        case SIMULATOR_LINK, SIMULATOR_RENAME: return "\(a[0]), \(path(1)), \(a[2]), \(path(3))"
        case SIMULATOR_READ, SIMULATOR_WRITE: return "\(a[0]), \(a[2]) bytes at \(a[3])"
        case SIMULATOR_LOCK: return "\(a[0]), \(a[1])"
        case SIMULATOR_LOCK_RANGE: return "\(a[0]), \(a[1]), \(a[2] == 0 ? "lock" : "unlock")"
        default: return "\(a[0])"
        }
    }
}

extension stat {
    fileprivate init(_ file: SimulatedFile) {
        self.init()
        st_dev = 77
        st_ino = numericCast(file.number)
        st_mode = (file.isDirectory ? S_IFDIR : S_IFREG) | file.mode
        st_nlink = numericCast(
            file.isDirectory ? 2 + file.names.values.lazy.filter(\.isDirectory).count : file.links
        )
        st_uid = file.owner
        st_gid = file.group
        st_size = file.isDirectory ? SimulatedFile.pageSize : file.size
        st_blksize = numericCast(SimulatedFile.pageSize)
        st_blocks = file.allocatedPages * SimulatedFile.pageSize / 512
        st_atim = timespec(nanoseconds: file.accessed)
        st_mtim = timespec(nanoseconds: file.modified)
        st_ctim = timespec(nanoseconds: file.changed)
    }
}

extension timespec {
    fileprivate init(nanoseconds: Int64) {
        self.init(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    }
}

extension simulator_call {
    /// Whether the call changes what other processes see.
    var isChange: Bool {
        switch self {
        case SIMULATOR_WRITE, SIMULATOR_TRUNCATE, SIMULATOR_ALLOCATE, SIMULATOR_MAKE_DIRECTORY,
            SIMULATOR_LINK,
            SIMULATOR_RENAME, SIMULATOR_UNLINK, SIMULATOR_SET_ATTRIBUTE, SIMULATOR_REMOVE_ATTRIBUTE,
            SIMULATOR_SET_TIMES, SIMULATOR_LOCK, SIMULATOR_LOCK_RANGE, SIMULATOR_STORE:
            true
        default: false
        }
    }

    /// The call's name in a trace.
    var name: String {
        switch self {
        case SIMULATOR_OPEN: "open"
        case SIMULATOR_CLOSE: "close"
        case SIMULATOR_READ: "read"
        case SIMULATOR_WRITE: "write"
        case SIMULATOR_SEEK: "seek"
        case SIMULATOR_STATUS: "status"
        case SIMULATOR_BIRTH_TIME: "birth time"
        case SIMULATOR_FILE_SYSTEM_KIND, SIMULATOR_FILE_SYSTEM_SPACE: "file system status"
        case SIMULATOR_SYNCHRONIZE: "synchronize"
        case SIMULATOR_TRUNCATE: "truncate"
        case SIMULATOR_ALLOCATE: "allocate"
        case SIMULATOR_MAKE_DIRECTORY: "make directory"
        case SIMULATOR_LINK: "link"
        case SIMULATOR_RENAME: "rename"
        case SIMULATOR_UNLINK: "unlink"
        case SIMULATOR_LIST: "list"
        case SIMULATOR_GET_ATTRIBUTE: "get attribute"
        case SIMULATOR_SET_ATTRIBUTE: "set attribute"
        case SIMULATOR_REMOVE_ATTRIBUTE: "remove attribute"
        case SIMULATOR_SET_TIMES: "set times"
        case SIMULATOR_CHANGE_MODE: "change mode"
        case SIMULATOR_CHANGE_OWNER: "change owner"
        case SIMULATOR_DESCRIPTOR_FLAGS: "descriptor flags"
        case SIMULATOR_DUPLICATE: "duplicate"
        case SIMULATOR_LOCK: "lock"
        case SIMULATOR_LOCK_RANGE: "lock range"
        case SIMULATOR_MAP: "map"
        case SIMULATOR_WORD: "load"
        case SIMULATOR_STORE: "store"
        default: "call \(rawValue)"
        }
    }
}
