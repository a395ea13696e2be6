// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// The error that is thrown if a signal ends the benchmark.
struct Interrupted: Error {
    let signal: Signal
}

/// The program that worker processes execute.
struct WorkerProgram: Sendable {
    var executable = CurrentProcess.executable
    /// Variables to add to this process's environment.
    var environment: [String: String] = [:]
}

/// A benchmark of one directory.
///
/// It fills the directory, runs worker processes on it, kills some of them if requested, and checks the remaining
/// contents.
struct Bench {
    /// The interval at which progress is shown and signals are noticed.
    private static let tick: Duration = .milliseconds(100)
    /// The longest time that a worker may take to end; a call waits at most 10 s for a lock, so a slower worker hangs.
    private static let patience: Duration = .seconds(60)

    private let plan: BenchPlan
    private let cache: SharedCache
    private let program: WorkerProgram
    private var workers: [Worker] = []
    /// The sum of the reports of workers that have ended, including killed ones.
    private var past = BenchReport()
    private var started: UInt32 = 0
    private var kills = 0
    private var crashes: [String] = []

    init(_ plan: BenchPlan, on cache: SharedCache, program: WorkerProgram = WorkerProgram()) {
        self.plan = plan
        self.cache = cache
        self.program = program
    }

    /// Runs the benchmark.
    ///
    /// - Parameters:
    ///   - interruption: Returns the signal that has arrived, if any; called periodically.
    ///   - onProgress: Called periodically with a line of progress.
    mutating func run(
        interruption: () -> Signal? = { nil },
        onProgress: (String) -> Void = { _ in }
    ) throws -> BenchResult {
        try fill(interruption, onProgress)
        for _ in 0..<plan.workers { try start() }
        if plan.isCollecting { try start(asCollector: true) }
        let begin = ContinuousClock.now
        let killInterval = plan.killSeconds.map { Duration.seconds($0) }
        var nextKill = killInterval.map { begin + $0 }
        while !isOver(after: .now - begin) {
            if let signal = interruption() { throw Interrupted(signal: signal) }
            let limit = min(Self.tick, (nextKill ?? .now + Self.tick) - .now)
            try listen(max(limit, .milliseconds(1)), replacesKilled: true)
            if let killInterval, let due = nextKill, .now >= due {
                killSomebody()
                nextKill = max(due + killInterval, .now)
            }
            onProgress(progress(after: .now - begin))
        }
        let elapsed = ContinuousClock.now - begin
        try stop()
        // The terminal sends a signal to the workers, too, so their end is not a crash.
        if let signal = interruption() { throw Interrupted(signal: signal) }
        onProgress("collecting and verifying")
        return BenchResult(
            plan: plan,
            report: past,
            seconds: max(0.001, elapsed.inSeconds),
            kills: kills,
            crashes: crashes,
            leftovers: try BenchLeftovers(in: cache)
        )
    }

    /// Stores a value for every key, so that misses occur only after removals.
    private func fill(_ interruption: () -> Signal?, _ onProgress: (String) -> Void) throws {
        let values = SelfProvingValues(size: plan.size)
        for index in 0..<plan.keys {
            if index % 64 == 0 {
                onProgress("filling, \(index) of \(plan.keys)")
                if let signal = interruption() { throw Interrupted(signal: signal) }
            }
            try cache.put(values.value(index), forKey: values.key(index))
        }
    }

    private func isOver(after elapsed: Duration) -> Bool {
        if !crashes.isEmpty || total(\.counts.bytesWritten) >= BenchPlan.writeLimit { return true }
        guard let operations = plan.operations else { return elapsed.inSeconds >= plan.seconds }
        let hasKilled = plan.killSeconds == nil || kills > 0
        let hasCollected = !plan.isCollecting || total(\.counts.collections) > 0
        return total(\.operations) >= operations && hasKilled && hasCollected
    }

    /// Returns the sum of a count over all workers' reports so far.
    private func total(_ count: KeyPath<BenchReport, Int>) -> Int {
        workers.reduce(past[keyPath: count]) { $0 + $1.report[keyPath: count] }
    }

    private func progress(after elapsed: Duration) -> String {
        let rate = Int(Double(total(\.operations)) / max(0.001, elapsed.inSeconds))
        let killed = kills > 0 ? ", " + Quantity.grouped(kills, "kill") : ""
        return "\(Quantity.text(elapsed)), \(Quantity.grouped(rate)) operations/s\(killed)"
    }

    // MARK: Workers

    private mutating func start(asCollector: Bool = false) throws {
        started += 1
        workers.append(try Worker(plan, asCollector ? 0 : started, on: cache.path, program))
    }

    /// Waits for reports, at most for `limit`, and records which workers have ended.
    private mutating func listen(_ limit: Duration, replacesKilled: Bool) throws {
        let readable = Set(try Readiness.wait(for: workers.map(\.output), limit: limit))
        for worker in workers where readable.contains(worker.output) {
            if try worker.receive() { continue }
            workers.removeAll { $0 === worker }
            past.merge(worker.report)
            let end = try worker.process.wait()
            if worker.isKilled, end == .killed(.kill) {
                if replacesKilled { try start(asCollector: worker.isCollector) }
            } else if replacesKilled || end != .exited(0) {
                crashes.append("a worker ended with \(end)")
            }
        }
    }

    private mutating func killSomebody() {
        // Only workers that have done something are killed: on a busy machine, starting or collecting can take longer
        // than the kill interval, and there would be no progress.
        let victims = workers.filter { worker in
            !worker.isKilled && worker.report.operations + worker.report.counts.collections > 0
        }
        guard let victim = victims.randomElement() else { return }
        victim.kill()
        kills += 1
    }

    /// Lets all workers finish their current operations, and waits for them.
    private mutating func stop() throws {
        for worker in workers { worker.process.closeInput() }
        let end = ContinuousClock.now + Self.patience
        while !workers.isEmpty {
            try listen(Self.tick, replacesKilled: false)
            for worker in workers where .now >= end && !worker.isKilled {
                crashes.append("a worker was still running after \(Quantity.text(Self.patience))")
                worker.kill()
            }
        }
    }
}

/// A worker process, as its parent process sees it.
private final class Worker {
    let isCollector: Bool
    /// The latest report.
    private(set) var report = BenchReport()
    private(set) var isKilled = false
    var process: ChildProcess
    private var unread: [UInt8] = []

    init(_ plan: BenchPlan, _ stream: UInt32, on directory: String, _ program: WorkerProgram) throws {
        isCollector = stream == 0
        process = try ChildProcess(
            starting: program.executable,
            ["--dir", directory] + (try BenchWorkerCommand.words(plan, stream: stream)),
            environment: program.environment
        )
    }

    var output: Int32 { process.output.rawValue }

    /// Reads the worker's output; returns false at its end.
    func receive() throws -> Bool {
        let bytes = try process.output.readAvailable()
        unread += bytes
        // The text after the last newline is incomplete, or was left by a killed worker.
        let lines = unread.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        if lines.count > 1 {
            report = try JSONDecoder().decode(BenchReport.self, from: Data(lines[lines.count - 2]))
            unread = Array(lines[lines.count - 1])
        }
        return !bytes.isEmpty
    }

    func kill() {
        isKilled = true
        process.send(.kill)
    }
}
