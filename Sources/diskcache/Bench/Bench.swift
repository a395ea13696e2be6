// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// A benchmark on one directory: fills it, sets workers on it, and looks at what they have left.
struct Bench {
    /// Bytes that one workload writes at most, by all workers: a fast disk must not get full in seconds,
    /// as what was replaced stays until the collection between two workloads.
    static let writeLimit: Int64 = 2 << 30

    private let plan: BenchPlan
    private let cache: SharedCache
    private let program: WorkerProgram
    private let onProgress: (String) -> Void
    private var nextStream: UInt32 = 1
    private var result: BenchResult

    /// - Parameters:
    ///   - program: what workers are started from.
    ///   - onProgress: gets a line now and then.
    init(
        _ plan: BenchPlan,
        on cache: SharedCache,
        program: WorkerProgram = WorkerProgram(),
        onProgress: @escaping (String) -> Void = { _ in }
    ) {
        self.plan = plan
        self.cache = cache
        self.program = program
        self.onProgress = onProgress
        result = BenchResult(directory: cache.path)
    }

    /// - Parameter interruption: asked now and then for a signal that ends it.
    mutating func run(interruption: () -> Signal? = { nil }) throws -> BenchResult {
        if let corpus = plan.corpus {
            let values = try Corpus(below: corpus)
            result.notes += values.notes
            let size = Quantity.text(bytes: values.totalSize)
            result.notes.append("corpus: \(Quantity.grouped(values.count, "file")), \(size)")
            try run(values, size: nil, interruption)
        } else {
            for size in plan.sizes {
                try run(SelfProvingValues(count: plan.keys, size: size), size: size, interruption)
            }
        }
        onProgress("collecting and verifying")
        result.leftovers = try leftovers()
        return result
    }

    private mutating func run(
        _ values: any BenchValues,
        size: Int?,
        _ interruption: () -> Signal?
    ) throws {
        for task in plan.workloads {
            let name = task.rawValue + (size.map { " " + Quantity.text(bytes: Int64($0)) } ?? "")
            // Not timed: bounds the space that replaced values take. What the last workload leaves is for
            // the one collection after which nothing may be left.
            if !result.rows.isEmpty { try cache.collectGarbage() }
            if task != .put { try fill(values, name, interruption) }
            try run(task, size: size, name, interruption)
        }
    }

    /// Gives every key a value that has none, so that every later miss is one too many.
    private func fill(
        _ values: any BenchValues,
        _ name: String,
        _ interruption: () -> Signal?
    ) throws {
        for index in 0..<values.count {
            if index % 64 == 0 {
                onProgress("\(name): filling, \(index) of \(values.count)")
                if let signal = interruption() { throw Interrupted(signal: signal) }
            }
            guard try !cache.contains(values.key(index)) else { continue }
            try cache.put(values.value(index, version: .initial), forKey: values.key(index))
        }
    }

    private mutating func run(
        _ task: BenchTask,
        size: Int?,
        _ name: String,
        _ interruption: () -> Signal?
    ) throws {
        var crew = try Crew(
            workerPlans(task, size),
            program: program,
            killInterval: plan.killInterval,
            seed: plan.seed,
            onProgress: progress(name)
        )
        let found = try crew.run(interruption: interruption)
        nextStream = crew.unusedStream
        result.rows.append(BenchRow(found, workload: task, valueBytes: size, workers: plan.workers))
        result.wrongValues += found.wrongValues
        result.failures += found.failures
        result.crashes += found.crashes
    }

    private func progress(_ name: String) -> (CrewProgress) -> Void {
        let onProgress = onProgress
        return { progress in
            let rate = Double(progress.operations) / max(0.001, progress.elapsed / .seconds(1))
            let kills = progress.kills > 0 ? ", " + Quantity.grouped(progress.kills, "kill") : ""
            onProgress(
                "\(name): \(Quantity.text(progress.elapsed)), \(Quantity.grouped(Int(rate))) operations/s\(kills)"
            )
        }
    }

    private func workerPlans(_ task: BenchTask, _ size: Int?) -> [WorkerPlan] {
        var plan = WorkerPlan(directory: cache.path, task: task, stream: 0)
        plan.size = size ?? 0
        plan.keys = self.plan.keys
        plan.corpus = self.plan.corpus
        plan.seed = self.plan.seed
        plan.operations = self.plan.operations
        plan.seconds = self.plan.seconds
        plan.repeatPercent = self.plan.repeatPercent
        plan.maximumBytes = Self.writeLimit / Int64(self.plan.workers)
        // What a killed worker had not reported is done again.
        if self.plan.killInterval != nil { plan.reportMilliseconds = 20 }
        var plans = Array(repeating: plan, count: self.plan.workers)
        if self.plan.isCollecting {
            plan.task = .collect
            plans.append(plan)
        }
        for index in plans.indices { plans[index].stream = nextStream + UInt32(index) }
        return plans
    }

    /// One sweep, and then nothing may be there that no entry names.
    private func leftovers() throws -> BenchLeftovers {
        let sweep = try cache.collectGarbage()
        return BenchLeftovers(
            removed: sweep.removed,
            verification: try cache.verify(),
            temporaries: BenchDirectory.temporaries(in: cache.path)
        )
    }
}
