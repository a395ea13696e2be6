// SPDX-License-Identifier: Apache-2.0

import Platform

/// The threads that do the blocking part of asynchronous calls: one pool for each kind of waiting, so that what waits
/// for nobody never stands in line behind what does.
///
/// Swift's own threads, of which there are as many as processors, must never wait.
enum Lane {
    /// Waits for the medium, or a second for a put of this process that another one writes beside: it takes no lock and
    /// runs nothing of the program's but codecs.
    case reading
    /// Waits for locks and for room, within the patience for them, and for nothing that needs one of these threads.
    case writing
    /// Takes as long as the caller's files and closures do, or a whole collection, or waits until others are done.
    case lengthy

    fileprivate var pool: ThreadPool {
        switch self {
        case .reading: Self.readers.value
        case .writing: Self.writers.value
        case .lengthy: Self.others.value
        }
    }

    /// 16: what keeps a fast disk busy.
    private static let readers = PerProcess { ThreadPool("diskcache-read", limit: 16) }
    /// 64, as many as there are stripes of a kind: all may wait for one that a stopped process holds, or for the medium
    /// with ``CacheConfiguration/Durability/fsync``.
    private static let writers = PerProcess { ThreadPool("diskcache-write", limit: 64) }
    /// 256: what was begun may wait for what stands in line, at the other end of a pipe for instance, so the line
    /// begins late.
    private static let others = PerProcess { ThreadPool("diskcache-long", limit: 256) }
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
        lane.pool.run {
            do throws(Failure) {
                continuation.resume(returning: .success(try work()))
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }
    return try result.get()
}

/// Computations in the background of the blocking form, for which nobody waits.
///
/// Without a line to stand in: one that waited there would keep others waiting for its flight. 64 at once.
private let refreshers = PerProcess { ThreadPool("diskcache-fresh", limit: 64) }

/// Does a computation in the background on a thread of ours; false where there is none for it.
func refreshInBackground(_ work: @escaping @Sendable () -> Void) -> Bool {
    refreshers.value.runIfFree(work)
}
