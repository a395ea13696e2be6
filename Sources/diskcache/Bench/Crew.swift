// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// What worker processes did together.
struct CrewResult: Sendable {
    /// All workers' reports in one, those of killed ones included.
    var report = WorkerReport()
    /// The collector's, where there was one.
    var collector = WorkerReport()
    /// From the common start to the end of the last worker.
    var elapsed = Duration.zero
    var kills = 0
    /// Values that were not right, as far as they were told of.
    var wrongValues: [String] = []
    /// Calls that threw, as far as they were told of.
    var failures: [String] = []
    /// Workers that ended otherwise than they should.
    var crashes: [String] = []

    /// Wrong values of which a line arrived but no report did count too.
    var wrong: Int { max(report.wrong, wrongValues.count) }
}

/// How far a crew is.
struct CrewProgress {
    let operations: Int
    let elapsed: Duration
    let kills: Int
}

/// The user wants it to end.
struct Interrupted: Error {
    let signal: Signal
}

/// Worker processes that begin together, are killed at random if that is wanted, and are replaced until all
/// operations are done.
struct Crew {
    /// Workers report several times a second, and no call of the cache takes longer than its 10 s of
    /// patience with a lock: who says nothing for so long hangs.
    static let silenceLimit: Duration = .seconds(60)
    /// How often the progress is shown and a signal to this process noticed.
    private static let tick: Duration = .milliseconds(100)

    private let program: WorkerProgram
    private let killInterval: Duration?
    private let onProgress: (CrewProgress) -> Void
    private var processes: [WorkerProcess] = []
    private var nextStream: UInt32
    private var generator: SplitMix64
    private var result = CrewResult()
    private var start = ContinuousClock.now
    private var nextKill: ContinuousClock.Instant?
    private var nextTick = ContinuousClock.now

    /// Starts a process for each plan.
    ///
    /// - Parameters:
    ///   - killInterval: how often one of them is killed; nil: never.
    ///   - seed: decides which.
    init(
        _ plans: [WorkerPlan],
        program: WorkerProgram = WorkerProgram(),
        killInterval: Duration? = nil,
        seed: UInt64 = 1,
        onProgress: @escaping (CrewProgress) -> Void = { _ in }
    ) throws {
        self.program = program
        self.killInterval = killInterval
        self.onProgress = onProgress
        generator = SplitMix64(seed: seed)
        nextStream = (plans.map(\.stream).max() ?? 0) + 1
        for plan in plans { processes.append(try WorkerProcess(plan, program)) }
    }

    /// Lets them work until all have done what they were told; a collector is killed then.
    ///
    /// - Parameter interruption: asked now and then for a signal that ends it.
    mutating func run(interruption: () -> Signal? = { nil }) throws -> CrewResult {
        Signal.ignoreBrokenPipes()
        while processes.contains(where: { $0.state == .starting }) { try listen(interruption) }
        guard result.crashes.isEmpty else { return result }
        start = .now
        nextKill = killInterval.map { start + $0 }
        for process in processes { try process.begin() }
        while processes.contains(where: { $0.plan.task != .collect }) {
            try listen(interruption)
            try killSomebody()
        }
        result.elapsed = ContinuousClock.now - start
        for collector in processes {
            collector.kill()
            while collector.state != .ended { try handle(collector) }
        }
        // At a terminal it has ended the workers too, which must not look like a crash.
        if let signal = interruption() { throw Interrupted(signal: signal) }
        return result
    }

    /// The first stream that no process of this crew has had.
    var unusedStream: UInt32 { nextStream }

    /// Waits until somebody says something, or for a tick, and acts on it.
    private mutating func listen(_ interruption: () -> Signal?) throws {
        if let signal = interruption() { throw Interrupted(signal: signal) }
        let now = ContinuousClock.now
        let limit = max(.milliseconds(1), min(Self.tick, (nextKill ?? now + Self.tick) - now))
        let readable = Set(try Readiness.wait(for: processes.map(\.output), limit: limit))
        for process in processes where readable.contains(process.output) { try handle(process) }
        for process in processes
        where ContinuousClock.now - process.lastHeard > Self.silenceLimit && !process.isKilled {
            result.crashes.append("worker \(process.plan.stream) said nothing for \(Self.silenceLimit)")
            process.kill()
        }
        if ContinuousClock.now >= nextTick { showProgress() }
    }

    private mutating func showProgress() {
        nextTick = .now + Self.tick
        let operations = processes.reduce(result.report.operations) {
            $0 + ($1.plan.task == .collect ? 0 : $1.report.operations)
        }
        onProgress(
            CrewProgress(operations: operations, elapsed: ContinuousClock.now - start, kills: result.kills)
        )
    }

    private mutating func handle(_ process: WorkerProcess) throws {
        for message in try process.receive() {
            switch message {
            case .wrongValue(let text): result.wrongValues.append(text)
            case .failure(let text): result.failures.append(text)
            case .ready where nextKill != nil: try process.begin()
            case .ready, .report, .finished: break
            }
        }
        guard process.state == .finished || process.state == .ended else { return }
        try dismiss(process)
    }

    /// Takes a process that has ended, or will at once, off the crew; what it left undone goes to another.
    private mutating func dismiss(_ process: WorkerProcess) throws {
        processes.removeAll { $0 === process }
        let end = try process.end()
        if process.plan.task == .collect {
            result.collector.merge(process.report)
        } else {
            result.report.merge(process.report)
        }
        if process.state == .finished { return }
        guard process.isKilled, end == .killed(.kill) else {
            result.crashes.append("worker \(process.plan.stream) ended with \(end)")
            return
        }
        guard let plan = rest(of: process) else { return }
        processes.append(try WorkerProcess(plan, program))
    }

    /// What a killed process has not done; nil where that is nothing.
    private mutating func rest(of process: WorkerProcess) -> WorkerPlan? {
        var plan = process.plan
        let isOver = !processes.contains { $0.plan.task != .collect }
        if plan.task == .collect, isOver { return nil }
        if let operations = plan.operations { plan.operations = operations - process.report.operations }
        if let seconds = plan.seconds { plan.seconds = seconds - process.lifetime / .seconds(1) }
        plan.maximumBytes -= process.report.bytesWritten
        plan.stream = nextStream
        nextStream += 1
        let isDone = plan.operations ?? 1 <= 0 || plan.seconds ?? 1 <= 0 || plan.maximumBytes <= 0
        return isDone ? nil : plan
    }

    private mutating func killSomebody() throws {
        guard let killInterval, let due = nextKill, .now >= due else { return }
        nextKill = max(due + killInterval, .now)
        // Those that have done nothing yet are left to it: else on a busy machine, where starting or a sweep
        // takes longer than a life, nothing would ever be done.
        let victims = processes.filter {
            let done = $0.plan.task == .collect ? $0.report.sweeps : $0.report.operations
            return $0.state == .working && !$0.isKilled && done > 0
        }
        guard let victim = victims.randomElement(using: &generator) else { return }
        victim.kill()
        result.kills += 1
    }
}
