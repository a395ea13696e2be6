// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

/// What closing a cache did.
public struct CloseReport: Sendable, Equatable {
    /// Whether this was the last cache open in the directory, of all processes, not counting those that take no
    /// part (see ``CacheConfiguration/Janitor/joinsSession``).
    public internal(set) var wasLast = false
    /// What the removal of expired values did; nil if others have the cache open, or another process was
    /// collecting.
    public internal(set) var collection: CollectionReport?
    /// False if the time was too short, another process was collecting, or something failed.
    ///
    /// Values that were waiting to be written may then be lost; expired ones are left to the next process.
    public internal(set) var isComplete = true
    /// What failed.
    public internal(set) var failure: CacheError?
}

extension SharedCache {
    /// Ends the use of this cache: later calls throw `closed`, calls under way end as usual.
    ///
    /// Writes queued values and records the last uses. The last one to close, of all processes, also removes
    /// expired values. A second call does nothing. If a process exits without it, or crashes, the next one
    /// removes what has expired. Descriptors are closed when the last reference to the cache goes.
    ///
    /// - Parameter deadline: how long this may take. The default is well below the 10 s that container runtimes
    ///   grant after SIGTERM. With nothing to do it takes well under a millisecond, and a few more if the
    ///   janitor is in the middle of a collection. The last one to close looks at all keys and values, which
    ///   takes tens of milliseconds even if nothing has expired.
    @discardableResult
    public func close(deadline: Duration = .seconds(5)) -> CloseReport {
        presence.close(deadline: deadline)
    }

    /// The same, on a thread of the library.
    @discardableResult
    public func close(deadline: Duration = .seconds(5)) async -> CloseReport {
        await offload(on: .lengthy) { [presence] () throws(Never) in presence.close(deadline: deadline) }
    }

    /// From now on SIGTERM and SIGINT close all caches of this process, including those opened later, within
    /// the deadline, and then end the process as these signals do.
    ///
    /// A second signal ends it at once. A signal that the process ignores, as under nohup(1), stays ignored. A
    /// thread waits for the signals as long as the process lives; the signal handler only wakes it. Calling
    /// this again changes the deadline.
    ///
    /// If your program handles these signals itself, call `close(deadline:)` in its handling instead.
    ///
    /// - Throws: ``CacheError`` with the code `invalidArgument` if the process has a handler for one of them,
    ///   which stays; `inputOutput` if there is no descriptor or thread left.
    public static func closeOnTermination(deadline: Duration = .seconds(5))
        throws(CacheError)
    {
        try OpenCaches.all.closeOnTermination(deadline: deadline)
    }
}
