// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// One worker process: does its share of operations on the cache and checks every value that it gets.
struct BenchWorker {
    private let plan: WorkerPlan
    private let cache: SharedCache
    private let values: any BenchValues
    private let keys: ZipfSampler
    private let send: (WorkerMessage) throws -> Void
    private var generator: SplitMix64
    private var report = WorkerReport()
    private var order = WriteOrder()
    private var number: UInt32 = 0

    /// Values that all writers repeat, for each key: few, so that they come again soon.
    static let recurringValues: UInt32 = 4
    /// Wrong values and failures of which a line is written: more would tell no more.
    private static let detailLimit = 20

    /// - Parameter send: takes the messages to whoever started this.
    init(
        _ plan: WorkerPlan,
        on cache: SharedCache,
        values: any BenchValues,
        send: @escaping (WorkerMessage) throws -> Void
    ) {
        self.plan = plan
        self.cache = cache
        self.values = values
        self.send = send
        keys = ZipfSampler(count: values.count, seed: plan.seed)
        generator = SplitMix64(seed: plan.seed &+ SplitMix64.mix(UInt64(plan.stream)))
    }

    /// Works until its plan is fulfilled.
    mutating func run() throws {
        let start = ContinuousClock.now
        let end = plan.seconds.map { start + .seconds($0) }
        let interval = Duration.milliseconds(plan.reportMilliseconds)
        var nextReport = start + interval
        while report.operations < plan.operations ?? .max, report.bytesWritten < plan.maximumBytes {
            let finished = try operate()
            if let end, finished >= end { break }
            guard finished >= nextReport else { continue }
            try send(.report(report))
            nextReport = finished + interval
        }
        if report.bytesWritten >= plan.maximumBytes { report.cuts = 1 }
        try send(.finished(report))
    }

    private enum Call {
        case get, put, remove
    }

    /// One operation; the moment when it was done.
    private mutating func operate() throws -> ContinuousClock.Instant {
        let index = keys.next(using: &generator)
        do throws(CacheError) {
            switch nextCall() {
            case .get: return try get(index)
            case .put: return try put(index)
            case .remove: return try remove(index)
            }
        } catch {
            report.failures += 1
            if report.failures <= Self.detailLimit { try send(.failure(error.message)) }
            return .now
        }
    }

    private mutating func nextCall() -> Call {
        let dice = Int.random(in: 0..<10, using: &generator)
        return switch plan.task {
        case .put: .put
        case .mixed: dice == 0 ? .put : .get
        case .churn: dice == 0 ? .remove : dice < 4 ? .put : .get
        default: .get
        }
    }

    private mutating func remove(_ index: Int) throws(CacheError) -> ContinuousClock.Instant {
        try cache.remove(values.key(index))
        report.removals += 1
        // None of this process's values so far may be seen again under that key.
        order.note(Version(stream: plan.stream, number: number + 1), ofKey: index)
        return .now
    }

    private mutating func put(_ index: Int) throws(CacheError) -> ContinuousClock.Instant {
        let version = nextVersion()
        let data = values.value(index, version: version)
        let key = values.key(index)
        let start = ContinuousClock.now
        try cache.put(data, forKey: key)
        let end = ContinuousClock.now
        report.puts.record(nanoseconds: (end - start).saturatingNanoseconds)
        report.bytesWritten += Int64(data.count)
        order.note(version, ofKey: index)
        return end
    }

    private mutating func get(_ index: Int) throws(CacheError) -> ContinuousClock.Instant {
        let key = values.key(index)
        let start = ContinuousClock.now
        let hit = try cache.get(key)
        let end = ContinuousClock.now
        report.gets.record(nanoseconds: (end - start).saturatingNanoseconds)
        guard let hit else {
            report.misses += 1
            return end
        }
        report.hits += 1
        report.bytesRead += Int64(hit.data.count)
        if let wrong = judge(hit.data, index) { tell(wrong, key) }
        return end
    }

    private mutating func judge(_ data: Data, _ index: Int) -> WrongValue? {
        switch values.check(data, index) {
        case .wrong(let wrong): return wrong
        case .right(nil): return nil
        case .right(let version?): return order.check(version, ofKey: index)
        }
    }

    /// At once: the next moment this process may be killed.
    private mutating func tell(_ wrong: WrongValue, _ key: String) {
        report.wrong += 1
        guard report.wrong <= Self.detailLimit else { return }
        do {
            try send(.wrongValue("\(key): \(wrong)"))
        } catch {
            // Nobody listens any more; what follows will fail and end this process.
            return
        }
    }

    private mutating func nextVersion() -> Version {
        if plan.repeatPercent > 0, Int.random(in: 0..<100, using: &generator) < plan.repeatPercent {
            return .recurring(UInt32.random(in: 0..<Self.recurringValues, using: &generator))
        }
        number += 1
        return Version(stream: plan.stream, number: number)
    }
}

/// What one process has seen of the order of writes: a value of a writer never comes back after a later one
/// of the same writer, and the initial one after none.
struct WriteOrder {
    private struct Writer: Hashable {
        let key: Int
        let stream: UInt32
    }

    private var latest: [Writer: UInt32] = [:]
    private var overwritten: Set<Int> = []

    /// Remembers a value that was written or seen.
    mutating func note(_ version: Version, ofKey key: Int) {
        if version == .initial { return }
        overwritten.insert(key)
        if version.isRecurring { return }
        let writer = Writer(key: key, stream: version.stream)
        latest[writer] = max(version.number, latest[writer] ?? 0)
    }

    /// Remembers a value that was read and says whether it should have been gone.
    mutating func check(_ version: Version, ofKey key: Int) -> WrongValue? {
        if version == .initial { return overwritten.contains(key) ? .outdated(version, after: 1) : nil }
        let seen = version.isRecurring ? nil : latest[Writer(key: key, stream: version.stream)]
        note(version, ofKey: key)
        guard let seen, seen > version.number else { return nil }
        return .outdated(version, after: seen)
    }
}
