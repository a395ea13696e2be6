// SPDX-License-Identifier: Apache-2.0

import CPlatform

/// A thread that waits for an asynchronous function and runs the function itself.
///
/// All parts of the function run on this thread, except those on an actor or with another executor preference. They may
/// block the thread, because nothing else uses it. So a library call that has blocking work to do needs no other thread
/// for it (``isCurrent``), and a function that waits for nothing causes no context switch. Unstructured tasks that the
/// function starts run on Swift's pool.
package final class WaitingThread: TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var isOver = false
    }

    private let state = Monitored(State())

    /// Whether the calling code runs on a waiting thread, which may block.
    package static var isCurrent: Bool { cplatform_is_waiting_thread() }

    /// Runs `body` on the calling thread, and returns its result.
    @available(*, noasync)
    package static func run<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Value {
        let thread = WaitingThread()
        let result = Locked<Value?>.Box(nil)
        Task.detached(executorPreference: thread) {
            let value = await body()
            result.value.withLock { $0 = value }
            thread.state.withLock { $0.isOver = true }
        }
        thread.work()
        guard let value = result.value.withLock({ $0 }) else {
            preconditionFailure("the thread runs jobs until there is a result")
        }
        return value
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
        state.wakeOne()
    }

    private func work() {
        // The function that this thread runs may itself call `run`.
        let isNested = Self.isCurrent
        cplatform_set_waiting_thread(true)
        defer { cplatform_set_waiting_thread(isNested) }
        while true {
            let job: UnownedJob?? = state.wait { state in
                if !state.jobs.isEmpty { return .some(state.jobs.removeFirst()) }
                return state.isOver ? .some(nil) : nil
            }
            guard let job = job ?? nil else { return }
            unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
