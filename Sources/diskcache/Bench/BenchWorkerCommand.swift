// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// `diskcache bench-worker PLAN`: one process of a benchmark or a stress test.
///
/// It opens the cache, says that it is ready, and begins when its standard input ends after "go", so that
/// all begin together; without "go" whoever started it is gone.
struct BenchWorkerCommand: Command {
    static let name = "bench-worker"
    static let operands = "PLAN"
    static let summary = "do one process's share of a benchmark"
    static let details = "Started by `diskcache bench`; PLAN is JSON."
    static let options: [Option] = []
    static let isHidden = true

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(1...1, "a plan")
        let plan: WorkerPlan
        do {
            plan = try JSONDecoder().decode(WorkerPlan.self, from: Data(arguments.operands[0].utf8))
        } catch {
            throw Failure.usage("bench-worker: the plan is not one: \(error)")
        }
        let cache = try SharedCache(at: plan.directory, configuration: arguments.configuration())
        let channel = try WorkerChannel()
        switch plan.task {
        case .get, .put, .mixed, .churn:
            let values = try plan.values()
            var worker = BenchWorker(plan, on: cache, values: values, send: channel.send)
            guard try channel.awaitStart() else { return .done }
            try worker.run()
        case .collect, .increment, .claim:
            guard try channel.awaitStart() else { return .done }
            try LockstepWorker(plan: plan, cache: cache, send: channel.send).run()
        }
        return .done
    }
}

extension WorkerPlan {
    /// The values that this plan is about.
    func values() throws(Failure) -> any BenchValues {
        if let corpus { return try Corpus(below: corpus) }
        return SelfProvingValues(count: keys, size: size)
    }

    /// This plan as the argument that says it.
    var argument: String {
        get throws { String(decoding: try JSONEncoder().encode(self), as: UTF8.self) }
    }
}

/// A worker's end of the pipes.
final class WorkerChannel {
    private let output: FileDescriptor

    init() throws(Errno) {
        output = try FileDescriptor.duplicate(Terminal.standardOutput)
    }

    /// Says that everything is ready and waits for the others; false: nobody wants it any more.
    func awaitStart() throws -> Bool {
        try send(.ready)
        let input = try FileDescriptor.duplicate(Terminal.standardInput)
        return try input.readToEnd(limit: 16).map { String(decoding: $0, as: UTF8.self) } == "go\n"
    }

    func send(_ message: WorkerMessage) throws {
        try output.writeAll(try message.line.utf8Span.span)
    }
}

/// The tasks whose result tells of atomicity rather than speed.
struct LockstepWorker {
    let plan: WorkerPlan
    let cache: SharedCache
    let send: (WorkerMessage) throws -> Void

    /// The key that all of them work on.
    static let key = "bench/shared"

    func run() throws {
        switch plan.task {
        case .collect: try collect()
        case .increment: try increment()
        case .claim: try claim()
        case .get, .put, .mixed, .churn: preconditionFailure("a BenchWorker does these")
        }
    }

    /// Sweeps until killed; whoever started it going away ends it too, by a failing write.
    private func collect() throws {
        var report = WorkerReport()
        while true {
            do throws(CacheError) {
                let result = try cache.collectGarbage()
                report.sweeps += 1
                report.removed += result.removed.values.reduce(0) { $0 + $1.count }
                report.spared += result.spared
                report.skippedStripes += result.skippedStripes.count
            } catch {
                report.failures += 1
                try send(.failure(error.message))
            }
            try send(.report(report))
        }
    }

    private func increment() throws {
        var report = WorkerReport()
        for _ in 0..<(plan.operations ?? 0) {
            let start = ContinuousClock.now
            try cache.update(Self.key) { old in
                let number = old.flatMap { Int(String(decoding: $0, as: UTF8.self)) } ?? 0
                return Data("\(number + 1)".utf8)
            }
            report.puts.record(nanoseconds: (ContinuousClock.now - start).saturatingNanoseconds)
        }
        try send(.finished(report))
    }

    private func claim() throws {
        var report = WorkerReport()
        if try cache.putIfAbsent(Data("\(plan.stream)".utf8), forKey: Self.key) { report.hits = 1 }
        try send(.finished(report))
    }
}
