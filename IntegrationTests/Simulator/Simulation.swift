// SPDX-License-Identifier: Apache-2.0

import CSimulator
import CacheStore
import DiskCache
import Foundation
import Platform
import TestSupport

/// One operation of a simulated process.
struct Operation: CustomStringConvertible {
    let kind: OperationKind
    let key: String
    /// The number of the value that is put or computed.
    let value: UInt64
    let length: Int
    /// The time to live in milliseconds; nil for no limit.
    let timeToLive: Int64?
    /// How long a computation takes, and how long the process waits before the operation, in microseconds.
    let delay: Int64

    var description: String {
        "\(kind.rawValue) \(key)\(kind == .put || kind == .compute ? " #\(value)" : "")"
    }
}

/// The result of one run.
struct Outcome: CustomStringConvertible {
    let seed: UInt64
    let profile: String
    let steps: Int
    let operations: Int
    let kills: Int
    let switches: Int
    /// The points at which a schedule can intervene.
    let points: Int
    let fingerprint: UInt64
    let violations: [String]

    var description: String {
        let head =
            "seed \(seed), \(profile): \(operations) operations, \(steps) steps, \(switches) switches, \(kills) kills, "
            + "fingerprint \(String(fingerprint, radix: 16))"
        return ([head] + violations.map { "  \($0)" }).joined(separator: "\n")
    }
}

/// A run of the product by several simulated processes, which a seed and a profile determine.
final class Simulation: @unchecked Sendable {
    static let path = "/tmp/cache"
    /// When the programs of a given schedule begin, by the monotonic clock in nanoseconds.
    private static let beginning: Int64 = 2_000_000_000_000

    private let seed: UInt64
    private let profile: Profile
    private let mistake: Mistake?
    private let world: World
    private var history: [HistoryOperation] = []
    private var operations = 0
    private let programs: [[Operation]]
    /// The operations before the run, which are not disturbed.
    private let before: [Operation]
    /// The numbers that increments of one key returned, and how many increments began.
    private var counts: Set<Int> = []
    private var increments = 0
    /// The computations in progress: their keys and processes.
    private var computations: [(key: String, process: Int32)] = []

    /// Prepares a run; `programs` are those of the seed, unless others are given.
    init(
        seed: UInt64,
        profile: Profile,
        before: [Operation] = [],
        programs: [[Operation]]? = nil,
        mistake: Mistake? = nil
    ) {
        self.seed = seed
        self.profile = profile
        world = World(seed: seed, profile: profile)
        self.mistake = mistake
        // The values that are there when the control file is replaced.
        self.before = before + (profile.damagesControl ? Self.values(of: profile) : [])
        self.programs = programs ?? Self.programs(seed: seed, profile)
    }

    /// Returns a put of each key.
    private static func values(of profile: Profile) -> [Operation] {
        (0..<profile.keys).map {
            Operation(kind: .put, key: "key \($0)", value: 1, length: 100, timeToLive: nil, delay: 0)
        }
    }

    /// Returns the operations of each process, which the seed determines.
    static func programs(seed: UInt64, _ profile: Profile) -> [[Operation]] {
        var generator = SeededGenerator(seed: seed ^ 0x5eed)
        let kinds = profile.weights.flatMap { Array(repeating: $0.0, count: $0.1) }
        return (0..<profile.processes).map { number in
            (0..<profile.operations).map { _ in
                // Few values, so that the same bytes are put again, and under other keys.
                let value = UInt64.random(in: 1...UInt64(profile.values), using: &generator)
                var kind = kinds[Int.random(in: kinds.indices, using: &generator)]
                if profile.hasOneCollector, number > 0, kind == .collect { kind = .put }
                let expires =
                    profile.expiresOneIn > 0
                    && Int.random(in: 0..<profile.expiresOneIn, using: &generator) == 0
                return Operation(
                    kind: kind,
                    key: "key \(Int.random(in: 0..<profile.keys, using: &generator))",
                    value: value,
                    length: profile.lengths[Int(value) % profile.lengths.count],
                    timeToLive: expires
                        ? [50, 1000, 100_000][Int.random(in: 0..<3, using: &generator)] : nil,
                    delay: [0, 0, 0, 0, 10, 30, 100, 300][Int.random(in: 0..<8, using: &generator)]
                )
            }
        }
    }

    func run(isTracing: Bool = false) -> Outcome {
        World.present = world
        world.isTracing = isTracing
        world.kernel.capacity = profile.diskSize / SimulatedFile.pageSize
        if !profile.beginsEmpty { world.run([{ [self] process in prepare(process) }]) }
        world.isHostile = true
        world.kernel.mistake = mistake
        world.run(programs.map { program in { [self] process in execute(program, process) } }) { [self] _ in
            // After a process is killed, a new one reads the keys.
            { [self] process in execute(Array(reading), process) }
        }
        world.isHostile = false
        judge()
        world.run([{ [self] process in check(process) }])
        World.present = nil
        world.kernel.discard()
        return Outcome(
            seed: seed,
            profile: profile.name,
            steps: world.steps,
            operations: operations,
            kills: world.kills,
            switches: world.switches,
            points: world.points,
            fingerprint: world.fingerprint,
            violations: world.violations
        )
    }

    private var reading: [Operation] {
        (0..<profile.keys).map {
            Operation(kind: .get, key: "key \($0)", value: 0, length: 0, timeToLive: nil, delay: 0)
        }
    }

    private func open() throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.memory.costLimit = .bytes(1 << 20)
        configuration.memory.shrinksUnderPressure = false
        configuration.metadataForm = profile.usesSidecars ? .sidecar : .automatic
        if world.kernel.mistake == .generations { configuration.checksGenerations = false }
        if world.kernel.mistake == .checksums { configuration.verification = .length }
        if let limit = profile.limit { configuration.limits = CacheLimits(maximumSize: .bytes(limit)) }
        return try SharedCache(at: Self.path, configuration: configuration)
    }

    /// Makes the library initialize its globals, which it does once per program, so that the first run is like all others.
    static func warmUp() {
        _ = Simulation(seed: 0, profile: Profile(name: "none", operations: 0)).run()
    }

    private func prepare(_ process: SimulatedProcess) {
        do {
            let cache = try open()
            try cache.put(Data("x".utf8), forKey: "first")
            _ = try cache.get(forKey: "first")
            try cache.directory.collect()
            _ = cache.close()
            execute(before, process)
        } catch {
            world.report("the cache can't be prepared: \(error)")
        }
        if profile.damagesControl { world.damageControl() }
    }

    // MARK: Operations

    /// The bytes of a value: its number, repeated up to the length.
    private func bytes(_ value: UInt64, _ length: Int) -> Data {
        var text = "\(value);"
        while text.utf8.count < length { text += text }
        return Data(text.utf8)
    }

    /// Returns the number of a value; nil if no operation puts these bytes under this key.
    private func number(of data: Data, _ key: String) -> UInt64? {
        guard
            let number = String(decoding: data, as: UTF8.self).split(separator: ";").first.flatMap({
                UInt64($0)
            })
        else { return nil }
        let isPut = (programs + [before]).joined().contains { operation in
            operation.key == key && operation.value == number
                && [.put, .putIfAbsent, .compute].contains(operation.kind)
                && bytes(number, operation.length) == data
        }
        return isPut ? number : nil
    }

    private func execute(_ program: [Operation], _ process: SimulatedProcess) {
        var cache: SharedCache?
        if case .given = profile.schedule, world.isHostile, world.now < Self.beginning {
            // All processes have opened the cache before the first of them begins; the first one goes on first.
            cache = try? open()
            sleepThread(for: .nanoseconds(Self.beginning + Int64(process.identifier) - world.now))
        }
        process.runsProgram = true
        for operation in program {
            if operation.delay > 0 { sleepThread(for: .microseconds(operation.delay)) }
            let faults = process.faults
            do {
                if cache == nil { cache = try open() }
                guard let cache else { continue }
                world.say("begins \(operation)")
                process.beginOperation()
                try execute(operation, cache, process)
            } catch {
                world.say("\(operation) throws \(error)")
                if process.faults == faults, !isExplained(error) {
                    world.report("\(operation) of \(process.identifier) fails without a fault: \(error)")
                }
            }
            if operation.kind == .reopen {
                _ = cache?.close()
                cache = nil
            }
            operations += 1
            checkUsage(after: operation)
        }
        process.runsProgram = false
        _ = cache?.close()
    }

    /// Whether an operation may fail although none of its system calls failed.
    ///
    /// It may if a process that holds a lock did not run for a while, because it was stopped or not chosen.
    private func isExplained(_ error: any Error) -> Bool {
        guard let error = error as? CacheError else { return false }
        if profile.removalsOneIn > 0 { return error.code == .directoryVanished }
        // In a damaged directory any error is allowed.
        if world.damages > 0 { return true }
        // The values that are being written, or those of killed writers, reserve the whole limit.
        if error.code == .noRoom { return profile.limit != nil }
        return error.code == .busy && (profile.stopsOneIn > 0 || world.longestWait > 500_000_000)
    }

    private func begin(
        _ operation: Operation,
        _ effect: HistoryOperation.Effect,
        _ process: SimulatedProcess,
        key: String? = nil
    )
        -> Int
    {
        var entry = HistoryOperation(
            process: process.identifier,
            key: key ?? operation.key,
            effect: effect,
            start: world.steps
        )
        entry.isOptional = true
        entry.startTime = world.wallTime
        if let time = operation.timeToLive, entry.written == operation.value {
            // The end is rounded down to a millisecond.
            entry.expires = world.wallTime + (time - 1) * 1_000_000...Int64.max
        }
        history.append(entry)
        return history.count - 1
    }

    private func end(_ index: Int, isOptional: Bool = false) {
        history[index].end = world.steps
        history[index].endTime = world.wallTime
        history[index].isOptional = isOptional
        if let expires = history[index].expires {
            let length = expires.lowerBound - history[index].startTime + 1_000_000
            history[index].expires = expires.lowerBound...world.wallTime + length
        }
    }

    private func execute(_ operation: Operation, _ cache: SharedCache, _ process: SimulatedProcess) throws {
        let key = operation.key
        var options = PutOptions()
        if let time = operation.timeToLive { options.expires = .after(.milliseconds(time)) }
        switch operation.kind {
        case .get:
            let index = begin(operation, .read(0), process)
            let locks = process.calls[Int(SIMULATOR_LOCK.rawValue)]
            let hit = try cache.get(forKey: key)
            if process.calls[Int(SIMULATOR_LOCK.rawValue)] != locks, world.damages == 0 {
                world.report("a get of \(process.identifier) takes a lock")
            }
            if let hit {
                guard let number = number(of: hit.value, key) else {
                    world.report(
                        "get \(key) returns bytes that no process put: \(hit.value.prefix(40).map { $0 })"
                    )
                    return
                }
                history[index].effect = .read(number)
            }
            world.say("\(key) is \(hit == nil ? "absent" : "\(history[index].effect)")")
            end(index)
        case .put:
            let index = begin(operation, .write(operation.value), process)
            try cache.put(bytes(operation.value, operation.length), forKey: key, options: options)
            end(index)
        case .remove:
            let index = begin(operation, .write(0), process)
            try cache.remove(forKey: key)
            end(index)
        case .putIfAbsent:
            let index = begin(operation, .add(operation.value), process)
            let data = bytes(operation.value, operation.length)
            if try !cache.putIfAbsent(data, forKey: key, options: options) { history[index].effect = .find }
            end(index)
        case .increment:
            increments += 1
            let number = try cache.increment(forKey: "counter")
            if !counts.insert(number).inserted { world.report("two increments return \(number)") }
        case .expireAll:
            let indexes = (0..<profile.keys).map { begin(operation, .write(0), process, key: "key \($0)") }
            try cache.expireAll(.prefix("key"))
            for index in indexes { end(index) }
        case .removeAll:
            let indexes = (0..<profile.keys).map { begin(operation, .write(0), process, key: "key \($0)") }
            try cache.removeAll(.prefix("key"))
            for index in indexes { end(index) }
        case .touch:
            _ = try cache.touch(forKey: key)
        case .renew:
            // Changes no value: the history has nothing to explain.
            _ = try cache.setExpiration(.never, forKey: key)
        case .collect:
            var options = CollectionOptions()
            options.patience = .seconds(5)
            try cache.directory.collect(options)
        case .reopen: break
        case .compute: try compute(operation, cache, process, options)
        }
    }

    private func compute(
        _ operation: Operation,
        _ cache: SharedCache,
        _ process: SimulatedProcess,
        _ options: PutOptions
    ) throws {
        let key = operation.key
        // Stored at any time from the end of the computation on, if at all.
        let index = begin(operation, .write(operation.value), process)
        let isComputed = Locked<Bool>.Box(false)
        let value = cache.value(forKey: key, options: options) { [self] () -> Data in
            isComputed.value.withLock { $0 = true }
            let others = computations.filter { $0.key == key && isUndisturbed($0.process) }
            // The locks of computations are in the directory.
            if !others.isEmpty, profile.faultsOneIn == 0, profile.stopsOneIn == 0, profile.removalsOneIn == 0
            {
                world.report("\(process.identifier) computes \(key), and so does \(others[0].process)")
            }
            computations.append((key, process.identifier))
            sleepThread(for: .microseconds(operation.delay + 1))
            computations.removeAll { $0.key == key && $0.process == process.identifier }
            return bytes(operation.value, operation.length)
        }
        if number(of: value, key) == nil {
            world.report("value(forKey: \(key)) returns bytes that no process put")
        }
        if isComputed.value.withLock({ $0 }) {
            end(index, isOptional: true)
        } else {
            history[index].isShared = true
        }
    }

    private func isUndisturbed(_ process: Int32) -> Bool {
        world.processes.contains { $0.identifier == process && $0.isAlive }
    }

    // MARK: Checks

    /// Checks that the directory is within its limit (P4).
    private func checkUsage(after operation: Operation) {
        guard let limit = profile.limit, let directory = world.kernel.file(Self.path) else { return }
        let usage = world.kernel.usage(below: directory)
        if Double(usage) > Double(limit) * 1.05 {
            world.report("after \(operation) the directory takes \(usage) of \(limit) bytes")
        }
    }

    /// Checks that the operations on each key are linearizable (P2), and that no value outlives its time (P5).
    private func judge() {
        let search = HistorySearch(
            mayVanish: profile.limit != nil || profile.diskSize < 1 << 30 || profile.damageOneIn > 0
                || profile.faultsOneIn > 0 || profile.clockStepsOneIn > 0
        )
        if world.hasLostOrder { return }
        for key in Set(history.map(\.key)).sorted() {
            let operations = history.filter {
                // A read that did not end returned nothing.
                if case .read = $0.effect, $0.end == nil { return false }
                return $0.key == key && !$0.isShared
            }
            if !search.isLinearizable(operations) {
                let list = operations.map { "\n    \($0)" }.joined()
                world.report("the operations on \(key) are not linearizable:\(list)")
            }
        }
    }

    /// Checks that after one collection no file is orphaned, dangling, damaged or temporary (P1, P6).
    private func check(_ process: SimulatedProcess) {
        do {
            // Beyond the time in which a claim or a touched object counts as in use.
            sleepThread(for: .seconds(3600) + .nanoseconds(world.setBack))
            let cache = try open()
            if world.damages > 0 {
                var options = VerifyOptions()
                options.repair = true
                try cache.directory.verify(options)
            }
            let collection = try cache.directory.collect()
            if !collection.isComplete || !collection.skippedStripes.isEmpty || !collection.unreadable.isEmpty
            {
                world.report("the last collection is incomplete: \(collection)")
            }
            if isUndisturbed, let drift = collection.drift, drift.bytes != 0 {
                world.report("the last collection corrects the counted usage by \(-drift.bytes) bytes")
            }
            let report = try cache.directory.verify()
            if !report.isClean || report.orphans != 0 || report.unfinishedEntries != 0
                || !report.unrecognised.isEmpty
            {
                world.report("a collection leaves: \(report)")
            }
            try checkLedger(cache)
            for operation in reading { try checkValue(operation.key, cache) }
            try checkCounter(cache)
            _ = cache.close()
        } catch {
            world.report("the cache can't be checked: \(error)")
        }
        guard let root = world.kernel.file(Self.path) else { return world.report("the directory is gone") }
        for name in (root.names["tmp"]?.names ?? [:]).keys { world.report("tmp/\(name) is left") }
        for (name, _) in root.names["locks"]?.names ?? [:]
        where name.hasPrefix("flight-") || name.hasPrefix("lock-") {
            world.report("locks/\(name) is left")
        }
    }

    /// Whether no process was killed or stopped, no call failed, and the files are those that the processes have written.
    ///
    /// Then the counted bytes are exact even before a collection. (Two writers of one entry whose record takes a block may
    /// miscount that block; the keys here are short.)
    private var isUndisturbed: Bool {
        world.kills == 0 && world.damages == 0 && profile.stopsOneIn == 0 && profile.faultsOneIn == 0
            && profile.diskSize >= 1 << 30 && !profile.usesSidecars && !profile.damagesControl
    }

    /// Checks that after a collection the counted usage equals the usage that a walk finds.
    private func checkLedger(_ cache: SharedCache) throws {
        guard let totals = try cache.directory.totals(), totals.usage.isCounted else {
            // A failed call may have left the directory without a control file.
            if profile.faultsOneIn == 0, profile.diskSize >= 1 << 30 {
                world.report("the usage is not counted")
            }
            return
        }
        let shards = ["objects", "entries"].map {
            world.kernel.file(Self.path + "/" + $0)?.names.values.map(\.self) ?? []
        }
        let files = shards.joined().flatMap(\.names.values)
        let bytes = files.reduce(0) { $0 + $1.allocatedPages * SimulatedFile.pageSize }
        let entries = shards[1].reduce(0) { $0 + $1.names.count }
        if totals.usage.bytes != bytes || totals.usage.entries != entries {
            world.report("the ledger has \(totals.usage), a walk finds \(bytes) bytes and \(entries) entries")
        }
    }

    /// Checks that no increment is lost or counted twice.
    private func checkCounter(_ cache: SharedCache) throws {
        guard profile.limit == nil, profile.diskSize >= 1 << 30, world.damages == 0 else { return }
        let number =
            try cache.get(forKey: "counter").flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? 0
        if !(counts.count...increments).contains(number) || number < counts.max() ?? 0 {
            world.report(
                "the counter is \(number) after \(counts.count) of \(increments) increments succeeded"
            )
        }
    }

    private func checkValue(_ key: String, _ cache: SharedCache) throws {
        guard let hit = try cache.get(forKey: key) else { return }
        if number(of: hit.value, key) == nil { world.report("\(key) has bytes that no process put") }
    }
}
