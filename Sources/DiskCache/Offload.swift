// SPDX-License-Identifier: Apache-2.0

import Platform

/// The threads that do the blocking part of asynchronous calls: one pool for each kind of waiting, so that what waits
/// for nobody never stands in line behind what does.
///
/// Swift's own threads, of which there are as many as processors, must never wait.
struct Lane: Sendable {
    /// Waits for the medium, or a second for a put of this process that another one writes beside: it takes no lock and
    /// runs nothing of the program's but codecs.
    ///
    /// 16: what keeps a fast disk busy.
    static let reading = Lane("diskcache-read", limit: 16)
    /// Waits for locks and for room, within the patience for them, and for nothing that needs one of these threads.
    ///
    /// 64, as many as there are stripes of a kind: all may wait for one that a stopped process holds, or for the medium
    /// with ``CacheConfiguration/Durability/fsync``.
    static let writing = Lane("diskcache-write", limit: 64)
    /// Takes as long as the caller's files and closures do, or a whole collection, or waits until others are done.
    ///
    /// 256: what was begun may wait for what stands in line, at the other end of a pipe for instance, so the line
    /// begins late.
    static let lengthy = Lane("diskcache-long", limit: 256)
    /// Computations in the background of the blocking form, for which nobody waits.
    ///
    /// Without a line to stand in: one that waited there would keep others waiting for its flight. 64 at once.
    static let refreshing = Lane("diskcache-fresh", limit: 64)

    /// Waits for other machines, no longer than the limit for that (`RemoteTier.limit`).
    ///
    /// Without a line to stand in, in which nobody would keep that limit. 64 at once.
    static let asking = Lane("diskcache-ask", limit: 64)

    private let own: PerProcess<ThreadPool>

    private init(_ name: StaticString, limit: Int) {
        own = PerProcess { ThreadPool(name, limit: limit) }
    }

    var pool: ThreadPool { own.value }
}

/// Does blocking work on a thread of ours, and suspends the task until it is done.
///
/// Where the system has no thread left it waits for one that there is; where there is none it is done on the calling
/// thread.
func offload<Value: Sendable, Failure: Error>(
    on lane: Lane = .writing,
    _ work: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
        lane.pool.run { continuation.resume(returning: Result(catching: work)) }
    }
    return try result.get()
}

/// The same if a thread is free or can be made now; else nil at once.
func offloadIfFree<Value: Sendable>(
    on lane: Lane,
    _ work: @escaping @Sendable () -> Value?
) async -> Value? {
    await withCheckedContinuation { (continuation: CheckedContinuation<Value?, Never>) in
        let isBegun = lane.pool.runIfFree { continuation.resume(returning: work()) }
        if !isBegun { continuation.resume(returning: nil) }
    }
}
