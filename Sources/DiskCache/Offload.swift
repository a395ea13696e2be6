// SPDX-License-Identifier: Apache-2.0

import Platform

/// A thread pool for the blocking part of asynchronous calls.
///
/// There is one pool for each kind of wait, so that work that waits for no other caller never queues behind work that does.
/// Swift's own threads, one per processor, must never block.
struct WorkerPool: Sendable {
    /// Work that waits for the storage medium, or for up to a second until a put that this process is publishing has ended.
    ///
    /// It waits for no lock and runs no code of the program except codecs.
    ///
    /// 16 threads keep a fast disk busy.
    static let reading = WorkerPool("diskcache-read", limit: 16)
    /// Work that waits for locks and for space, up to the time limit for each, but never for other work of this pool.
    ///
    /// 64 threads, as many as there are lock stripes of one kind: a stopped process may hold any stripe, and all threads
    /// may wait for such a process, or for the medium with ``CacheConfiguration/Durability/fsync``.
    static let writing = WorkerPool("diskcache-write", limit: 64)
    /// Work without a time limit: reading the caller's files, running its closures, a whole collection, or waiting for
    /// other calls.
    ///
    /// 256 threads, so that work is rarely queued: running work may wait for queued work, for instance at the other end of
    /// a pipe.
    static let lengthy = WorkerPool("diskcache-long", limit: 256)
    /// Background computations of the blocking form, whose result no caller awaits.
    ///
    /// Up to 64 run at once, without a queue: a queued computation would block the waiters of its flight.
    static let refreshing = WorkerPool("diskcache-fresh", limit: 64)

    /// Work that waits for remote servers, no longer than their time limit (`RemoteTier.limit`).
    ///
    /// Up to 64 run at once, without a queue, because time spent in a queue would not count towards that limit.
    static let asking = WorkerPool("diskcache-ask", limit: 64)

    private let own: PerProcess<ThreadPool>

    private init(_ name: StaticString, limit: Int) {
        own = PerProcess { ThreadPool(name, limit: limit) }
    }

    var pool: ThreadPool { own.value }
}

/// Runs blocking work on a library thread, and suspends the task until it is done; on a waiting thread (``WaitingThread``)
/// it runs at once.
///
/// If the system cannot create a thread, the work waits for an existing one; if the pool has none, it runs on the calling
/// thread.
func offload<Value: Sendable, Failure: Error>(
    on lane: WorkerPool = .writing,
    _ work: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    if WaitingThread.isCurrent { return try work() }
    let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
        lane.pool.run { continuation.resume(returning: Result(catching: work)) }
    }
    return try result.get()
}

/// Runs blocking work if a thread is free or can be created now; otherwise returns nil without waiting.
func offloadIfFree<Value: Sendable>(
    on lane: WorkerPool,
    _ work: @escaping @Sendable () -> Value?
) async -> Value? {
    if WaitingThread.isCurrent { return work() }
    return await withCheckedContinuation { (continuation: CheckedContinuation<Value?, Never>) in
        let isBegun = lane.pool.runIfFree { continuation.resume(returning: work()) }
        if !isBegun { continuation.resume(returning: nil) }
    }
}
