// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// A worker process: it uses the cache, and checks every value that it gets, until its standard input ends.
struct BenchWorker {
    /// The number of values per key that are stored again and again; few, so that they recur soon.
    private static let recurringValues: UInt64 = 4
    /// The maximum number of reported problems; more of them would tell nothing new.
    private static let problemLimit = 10

    private let plan: BenchPlan
    /// The number of this worker, unique within a benchmark; 0 for the collector.
    private let stream: UInt32
    private let cache: SharedCache
    private let values: SelfProvingValues
    private var generator = SplitMix64(seed: .random(in: 0 ... .max))
    private var report = BenchReport()
    private var written: UInt64 = 0

    init(_ plan: BenchPlan, stream: UInt32, on cache: SharedCache) {
        self.plan = plan
        self.stream = stream
        self.cache = cache
        values = SelfProvingValues(size: plan.size)
    }

    mutating func run() throws {
        var next = ContinuousClock.now
        while true {
            do {
                try stream == 0 ? collect() : operate()
            } catch let error as CacheError {
                report.counts.failures += 1
                try tell(error.message)
            }
            let now = ContinuousClock.now
            if stream != 0, now < next { continue }
            // Shorter if workers are killed, because the unreported results of a killed worker are lost.
            next = now + .milliseconds(plan.killSeconds == nil ? 100 : 20)
            try send()
            // Standard input also ends when the parent process has ended.
            if try !Readiness.wait(for: [Terminal.standardInput], limit: .zero).isEmpty { return try send() }
        }
    }

    private func send() throws {
        try Output.print(JSON.line(report))
    }

    /// Records a problem and reports it at once, because this process may be killed at any moment.
    private mutating func tell(_ problem: String) throws {
        guard report.counts.problems.count < Self.problemLimit else { return }
        report.counts.problems.append(problem)
        try send()
    }

    private mutating func collect() throws {
        let removed = try cache.directory.collect().removed
        report.counts.collections += 1
        report.counts.collected += removed.values.reduce(0) { $0 + $1.count }
    }

    private mutating func operate() throws {
        // Half of the operations go to a tenth of the keys.
        let isHot = Bool.random(using: &generator)
        let index = Int.random(in: 0..<(isHot ? (plan.keys + 9) / 10 : plan.keys), using: &generator)
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<plan.puts: try put(index)
        case plan.puts..<plan.puts + plan.removals:
            try cache.remove(forKey: values.key(index))
            report.counts.removals += 1
        default: try get(index)
        }
    }

    private mutating func put(_ index: Int) throws {
        let (key, value) = (values.key(index), values.value(index, version: nextVersion()))
        let start = ContinuousClock.now
        try cache.put(value, forKey: key)
        report.puts.record(nanoseconds: (.now - start).saturatingNanoseconds)
        report.counts.bytesWritten += value.count
    }

    /// Returns a version that no other put uses, or a recurring version if this put must repeat a value.
    private mutating func nextVersion() -> UInt64 {
        if Int.random(in: 0..<100, using: &generator) < plan.repeats {
            return SelfProvingValues.recurring(.random(in: 0..<Self.recurringValues, using: &generator))
        }
        written += 1
        return UInt64(stream) << 32 | written
    }

    private mutating func get(_ index: Int) throws {
        let key = values.key(index)
        let start = ContinuousClock.now
        let hit = try cache.get(forKey: key)
        report.gets.record(nanoseconds: (.now - start).saturatingNanoseconds)
        guard let hit else { return report.counts.misses += 1 }
        report.counts.bytesRead += hit.value.count
        guard let problem = values.problem(in: hit.value, of: index) else { return }
        report.counts.wrong += 1
        try tell("\(key): \(problem)")
    }
}

/// `diskcache bench-worker PLAN STREAM`.
enum BenchWorkerCommand: Command {
    static let name = "bench-worker"
    static let operands = "PLAN STREAM"
    static let summary = "do one process's share of a benchmark"

    /// Returns the command line of a worker.
    static func words(_ plan: BenchPlan, stream: UInt32) throws -> [String] {
        [name, String(decoding: try JSONEncoder().encode(plan), as: UTF8.self), "\(stream)"]
    }

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let plan = try JSONDecoder().decode(BenchPlan.self, from: Data(arguments.operands[0].utf8))
        let stream = UInt32(try Quantity.count(arguments.operands[1]))
        var worker = BenchWorker(plan, stream: stream, on: try arguments.openCache())
        try worker.run()
        return .done
    }
}
