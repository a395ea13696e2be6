// SPDX-License-Identifier: Apache-2.0

/// A few threads of our own for work that blocks, first come first served.
///
/// On Linux Swift's tasks and Dispatch's queues share the threads of one pool, which takes a blocked thread
/// for a busy one: whatever waits there keeps every task of the program waiting.
///
/// Threads are made when there is more to do than idle ones can do, up to a limit, and end when there was nothing to do
/// for a while. Beyond the limit work waits in a queue, so what is done here must not wait for other work of the same
/// pool.
package final class ThreadPool: Sendable {
    package typealias Work = @Sendable () -> Void

    private struct State {
        /// Work in the order in which it came; a slice gives up its first element in O(1).
        var queue: ArraySlice<Work?> = []
        var threads = 0
        /// Of the threads, those that wait for work; some may have been told of it already.
        var idle = 0

        mutating func popFirst() -> Work? {
            guard !queue.isEmpty else { return nil }
            // Taken out: the slice keeps the memory of what it has given up.
            let work = queue[queue.startIndex].take()
            queue.removeFirst()
            return work
        }
    }

    private let name: StaticString
    private let limit: Int
    private let idleTime: Duration
    private let state = Monitored(State())

    /// Without a thread yet.
    ///
    /// - Parameters:
    ///   - name: of the threads; see ``DetachedThread/start(_:stackSize:_:)``.
    ///   - limit: how many there may be.
    ///   - idleTime: how long an idle one stays. Bursts come a second apart, and making a thread costs 50 µs.
    package init(_ name: StaticString, limit: Int, idleTime: Duration = .seconds(5)) {
        self.name = name
        self.limit = limit
        self.idleTime = idleTime
    }

    /// Does `work` on one of the threads, as soon as one is free.
    ///
    /// Where no thread can be made it waits for one that there is. The last resort, where there is none at all, is the
    /// calling thread.
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

    /// Does `work` on one of the threads if one is free or can be made now; false: it was not done.
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
            // Taken out: what the thread was started with lives as long as the thread does.
            first.value.withLock { $0.take() }?()
            self.serve()
        }
    }

    /// Does `work` on one of the threads, as soon as one is free; false: there is none and none can be made,
    /// and it was not done.
    package func runOnThread(_ work: @escaping Work) -> Bool {
        // Once more for the moment in which the last of the threads ends.
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

    /// Makes a thread that is counted already; false where there is none to be had.
    private func start(_ body: @escaping Work) -> Bool {
        do throws(Errno) {
            // With a stack of the usual size: some of the work is the program's own.
            try DetachedThread.start(name, stackSize: nil, body)
            return true
        } catch {
            // EAGAIN, whatever the limit that was reached.
            state.withLock { $0.threads -= 1 }
            return false
        }
    }

    // MARK: Threads

    private func serve() {
        while let work = next() { work() }
    }

    /// Waits for work; nil: the thread, which is counted no more, is to end.
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
            // Queued for this thread in the moment when it had waited long enough.
            if let work = state.popFirst() { return work }
            state.threads -= 1
            return nil
        }
    }

    /// Threads, those of them that are idle, and work that waits for one; for tests.
    var load: (threads: Int, idle: Int, queued: Int) {
        state.withLock { ($0.threads, $0.idle, $0.queue.count) }
    }
}
