// SPDX-License-Identifier: Apache-2.0

/// A small pool of threads for blocking work, in first-come, first-served order.
///
/// On Linux Swift's tasks and Dispatch's queues share the threads of one pool, which treats a blocked thread as busy:
/// blocking work there delays every task of the program.
///
/// Threads are created when there is more work than idle threads, up to a limit, and end after being idle for a while.
/// Beyond the limit work waits in a queue, so work must not wait for other work of the same pool.
package final class ThreadPool: Sendable {
    package typealias Work = @Sendable () -> Void

    private struct State {
        /// Work in order of submission; a slice removes its first element in O(1).
        var queue: ArraySlice<Work?> = []
        var threads = 0
        /// The number of threads that wait for work; some may have been woken already.
        var idle = 0

        mutating func popFirst() -> Work? {
            guard !queue.isEmpty else { return nil }
            // Set to nil, because the slice keeps removed elements in memory.
            let work = queue[queue.startIndex].take()
            queue.removeFirst()
            return work
        }
    }

    private let name: StaticString
    private let limit: Int
    private let idleTime: Duration
    private let state = Monitored(State())

    /// Creates a pool without threads.
    ///
    /// - Parameters:
    ///   - name: The threads' name; see ``DetachedThread/start(_:stackSize:_:)``.
    ///   - limit: The maximum number of threads.
    ///   - idleTime: How long an idle thread waits for work before it ends. Bursts come a second apart, and creating a
    ///     thread costs 50 µs.
    package init(_ name: StaticString, limit: Int, idleTime: Duration = .seconds(5)) {
        self.name = name
        self.limit = limit
        self.idleTime = idleTime
    }

    /// Runs `work` on one of the threads, as soon as one is free.
    ///
    /// If no thread can be created, the work waits for an existing one; if there is none either, it runs on the calling
    /// thread.
    package func run(_ work: @escaping Work) {
        let needsThread = state.withLock { state in
            state.queue.append(work)
            guard state.queue.count > state.idle, state.threads < limit else { return false }
            state.threads += 1
            return true
        }
        guard needsThread else {
            state.wakeOne()
            return
        }
        if start({ self.serve() }) { return }
        while let work = state.withLock({ $0.threads == 0 ? $0.popFirst() : nil }) { work() }
    }

    /// Runs `work` on one of the threads if one is free or can be created now; returns false if the work was not accepted.
    package func runIfFree(_ work: @escaping Work) -> Bool {
        let isQueued: Bool? = state.withLock { state in
            if state.queue.count < state.idle {
                state.queue.append(work)
                return true
            }
            guard state.threads < limit else { return nil }
            state.threads += 1
            return false
        }
        guard let isQueued else { return false }
        if isQueued {
            state.wakeOne()
            return true
        }
        let first = Locked<Work?>.Box(work)
        return start {
            // Set to nil, because the thread's closure lives as long as the thread.
            first.value.withLock { $0.take() }?()
            self.serve()
        }
    }

    /// Runs `work` on one of the threads, as soon as one is free; returns false, without running it, if no thread exists or
    /// can be created.
    package func runOnThread(_ work: @escaping Work) -> Bool {
        // Retried once, because the last thread may be ending.
        for _ in 0..<2 {
            if runIfFree(work) { return true }
            let isQueued = state.withLock { state in
                guard state.threads > 0 else { return false }
                state.queue.append(work)
                return true
            }
            if isQueued {
                state.wakeOne()
                return true
            }
        }
        return false
    }

    /// Creates a thread, which the caller has already counted; returns false if that fails.
    private func start(_ body: @escaping Work) -> Bool {
        do throws(Errno) {
            // The default stack size: some of the work is the program's code.
            try DetachedThread.start(name, stackSize: nil, body)
            return true
        } catch {
            // EAGAIN, whichever limit was reached.
            state.withLock { $0.threads -= 1 }
            return false
        }
    }

    // MARK: Threads

    private func serve() {
        while let work = next() { work() }
    }

    /// Waits for work; returns nil if the thread, which is no longer counted, must end.
    private func next() -> Work? {
        if let work = state.withLock({ $0.popFirst() }) { return work }
        state.withLock { $0.idle += 1 }
        let work = state.wait(until: .now + idleTime) { state -> Work? in
            guard let work = state.popFirst() else { return nil }
            state.idle -= 1
            return work
        }
        if let work { return work }
        return state.withLock { state in
            state.idle -= 1
            // Work may have been queued for this thread at the moment when its wait ended.
            if let work = state.popFirst() { return work }
            state.threads -= 1
            return nil
        }
    }

    /// The number of threads, of idle threads, and of queued work items; for tests.
    var load: (threads: Int, idle: Int, queued: Int) {
        state.withLock { ($0.threads, $0.idle, $0.queue.count) }
    }
}
