// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

/// The result of closing a cache.
public struct CloseReport: Sendable, Equatable {
    /// Whether this was the last open cache of the directory, across all processes.
    ///
    /// Caches that do not count as open are ignored (see ``CacheConfiguration/Janitor/joinsSession``).
    public internal(set) var wasLast = false
    /// The report on the removal of expired values; nil if other processes have the cache open, or another process was
    /// collecting.
    public internal(set) var collection: CollectionReport?
    /// Whether closing completed all of its work.
    ///
    /// False if the time was too short, another process was collecting, or an error occurred. Values in the write-behind
    /// queue may then be lost; expired values are left to the next process.
    public internal(set) var isComplete = true
    /// The error that occurred, if any.
    public internal(set) var failure: CacheError?
}

extension SharedCache {
    /// Closes the cache: later calls throw `closed`, and calls in progress finish normally.
    ///
    /// Publishes queued values and records the last accesses. The last cache to close, across all processes, also removes
    /// expired values. A second call has no effect. If a process crashes or exits without closing, the next one removes the
    /// expired values. File descriptors are closed when the last reference to the cache is released.
    ///
    /// - Parameter deadline: the maximum time. The default is well below the 10 s that container runtimes grant after
    ///   SIGTERM. Closing takes well under a millisecond if there is no work, and a few more if the janitor is in the middle
    ///   of a collection. The last cache to close scans all keys and values, which takes tens of milliseconds even if
    ///   nothing has expired.
    @discardableResult
    public func close(deadline: Duration = .seconds(5)) -> CloseReport {
        presence.close(deadline: deadline)
    }

    /// Closes the cache on a library thread; otherwise like the synchronous form.
    @discardableResult
    public func close(deadline: Duration = .seconds(5)) async -> CloseReport {
        await offload(on: .lengthy) { [presence] () throws(Never) in presence.close(deadline: deadline) }
    }

    /// Closes all caches of this process on SIGTERM and SIGINT, and then ends the process as these signals do.
    ///
    /// Caches opened later are included. Closing takes at most `deadline`; a second signal ends the process at once. An
    /// ignored signal, as under nohup(1), stays ignored. A thread waits for the signals for the lifetime of the process; the
    /// signal handler only wakes it. Calling this again changes the deadline.
    ///
    /// If your program handles these signals itself, call `close(deadline:)` there instead.
    ///
    /// - Throws: ``CacheError`` with the code `invalidArgument` if the process already has a handler for one of them, which
    ///   stays in place; `inputOutput` if no descriptor or thread is available.
    public static func closeOnTermination(deadline: Duration = .seconds(5))
        throws(CacheError)
    {
        try OpenCaches.all.closeOnTermination(deadline: deadline)
    }
}
