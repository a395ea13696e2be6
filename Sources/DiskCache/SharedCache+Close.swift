// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

extension SharedCache {
    /// Closes the cache: later calls throw `closed`, and calls in progress finish normally.
    ///
    /// Publishes queued values and records the last accesses. The last cache to close, across all processes, also removes
    /// expired values. A second call has no effect. If a process crashes or exits without closing, a later process removes
    /// the expired values. File descriptors are closed when the last reference to the cache is released.
    ///
    /// - Parameter deadline: the maximum time that closing takes. The default is well below the 10 s that container
    ///   runtimes grant after SIGTERM. Closing takes well under a millisecond if there is no work, and a few milliseconds
    ///   more if the janitor is in the middle of a collection. The last cache to close scans all keys and values, which
    ///   takes tens of milliseconds even if nothing has expired.
    @discardableResult
    public func close(deadline: Duration = .seconds(5)) -> CloseReport {
        presence.close(deadline: deadline)
    }

    /// Closes the cache on a library thread; otherwise like the synchronous form.
    @discardableResult
    public func close(deadline: Duration = .seconds(5)) async -> CloseReport {
        await offload(on: .lengthy) { [presence] () throws(Never) in presence.close(deadline: deadline) }
    }

    /// Closes all caches of this process on SIGTERM or SIGINT, and then lets the signal end the process.
    ///
    /// Caches opened later are included. Closing takes at most `deadline`; a second signal ends the process at once. An
    /// ignored signal, as under nohup(1), stays ignored. A thread waits for the signals for the lifetime of the process; the
    /// signal handler only wakes it. Calling this again changes the deadline.
    ///
    /// If your program handles these signals itself, call `close(deadline:)` there instead.
    ///
    /// - Throws: ``CacheError`` with the code `invalidArgument` if the process already has a handler for one of these
    ///   signals, which stays in place; `inputOutput` if no descriptor or thread is available.
    public static func closeOnTermination(deadline: Duration = .seconds(5))
        throws(CacheError)
    {
        try CacheRegistry.all.closeOnTermination(deadline: deadline)
    }
}
