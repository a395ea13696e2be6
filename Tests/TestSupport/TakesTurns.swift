// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import Testing

/// A trait that runs only a few tests at a time, on threads that the tests may block.
///
/// Swift Testing starts all tests at once, on as many threads as there are processors. There, a test that waits for a
/// process, a lock or a sleep delays all other tests, and its duration depends on their number. With this trait, each
/// test starts when it gets a turn. Its body runs on a separate thread, which it may block as ordinary programs do,
/// whether the test is `async` or not.
///
/// - Each case of a parameterized test takes a separate turn. A test that has the trait twice, for example through its
///   suite, takes one turn.
/// - A test that waits for its turn occupies no thread. Turns are given in the order of the requests.
/// - Child tasks (`async let`, task groups) also run on such threads. `Task { }` and `Task.detached { }` run on Swift's
///   shared pool and must not block.
public struct TakesTurns: SuiteTrait, TestTrait, TestScoping {
    /// Whether the current task already has a turn.
    @TaskLocal private static var hasTurn = false

    /// The turns: one more than there are processors, since some tests only wait, but at most four.
    ///
    /// There are at most four, because the processes that tests start, and the times that tests measure, need processors,
    /// too.
    private static let turns = Turns(count: min(ProcessInfo.processInfo.activeProcessorCount + 1, 4))

    /// Makes the trait of a suite apply to each of its tests instead of the suite as a whole.
    public var isRecursive: Bool { true }

    /// Waits for a turn, and runs `body` on a thread that may block.
    public func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing body: @Sendable () async throws -> Void
    ) async throws {
        if Self.hasTurn {
            try await body()
            return
        }
        await Self.turns.take()
        defer { Self.turns.giveBack() }
        try await Self.$hasTurn.withValue(true) {
            try await withTaskExecutorPreference(BlockableThreads.shared) { try await body() }
        }
    }
}

extension Trait where Self == TakesTurns {
    /// The trait for every suite: a few tests run at a time, on threads that they may block.
    public static var takesTurns: Self { Self() }
}

/// A number of turns, given in the order of the requests; waiting blocks no thread.
private final class Turns: Sendable {
    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Locked<State>

    init(count: Int) {
        state = Locked(State(free: count))
    }

    func take() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.free > 0 else {
                    state.waiting.append(continuation)
                    return false
                }
                state.free -= 1
                return true
            }
            if isFree { continuation.resume() }
        }
    }

    /// Passes the turn to the test that has waited longest.
    func giveBack() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.waiting.isEmpty {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}

/// An executor that runs each job at once, on an idle thread.
///
/// If no thread is idle, it starts a new one, so jobs may block, even if they wait for each other.
private final class BlockableThreads: TaskExecutor {
    static let shared = BlockableThreads()

    private struct State {
        var jobs: [UnownedJob] = []
        /// The number of threads that wait for a job, without those that were already woken for one.
        var idle = 0
    }

    private let state = Locked(State())
    private let wakeUp = DispatchSemaphore(value: 0)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let hasIdle = state.withLock { state in
            state.jobs.append(job)
            guard state.idle > 0 else { return false }
            state.idle -= 1
            return true
        }
        if hasIdle {
            wakeUp.signal()
        } else {
            Thread.detachNewThread { self.work() }
        }
    }

    private func work() {
        // If a Dispatch thread created this one, most signals are blocked, and programs that tests start would inherit
        // that.
        var none = sigset_t()
        sigemptyset(&none)
        pthread_sigmask(SIG_SETMASK, &none, nil)
        while true {
            let job = state.withLock { state -> UnownedJob? in
                if state.jobs.isEmpty {
                    state.idle += 1
                    return nil
                }
                return state.jobs.removeFirst()
            }
            if let job {
                job.runSynchronously(on: asUnownedTaskExecutor())
            } else {
                wakeUp.wait()
            }
        }
    }
}
