// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What closing a cache did.
public struct CloseReport: Sendable, Equatable {
    /// Whether no other cache was open in the directory, in any process, but those that take no part (see
    /// ``CacheConfiguration/Janitor/joinsSession``).
    public internal(set) var wasLast = false
    /// What the removal of expired values did; nil where it was not for this cache to do, or another process
    /// was at it.
    public internal(set) var collection: CollectionReport?
    /// False: the time was too short, or another process was collecting, or something failed.
    ///
    /// Values that waited to be written may be lost then; expired ones are left to the next process.
    public internal(set) var isComplete = true
    /// What failed.
    public internal(set) var failure: CacheError?
}

extension SharedCache {
    /// Ends the use of this cache: later calls throw `closed`, calls under way end as usual.
    ///
    /// Writes what waits to be written, notes the last uses, and, as the last one out of all processes, removes
    /// the values that have expired. A second call does nothing. Whoever does without it, or crashes, leaves
    /// the latter to the next process. Descriptors are closed when the last reference to the cache goes.
    ///
    /// - Parameter deadline: how long this may take: well below the 10 s that container runtimes grant after SIGTERM.
    ///   Without anything to do it takes well under a
    ///   millisecond; where the janitor is in the middle of a collection a few more. The last one out looks at
    ///   all keys and values, which takes tens of milliseconds also where nothing has expired.
    @discardableResult
    public func close(deadline: Duration = .seconds(5)) -> CloseReport {
        presence.close(deadline: deadline)
    }

    /// The same, off the threads of Swift's tasks.
    @discardableResult
    public func close(deadline: Duration = .seconds(5)) async -> CloseReport {
        await offload(on: .lengthy) { [presence] () throws(Never) in presence.close(deadline: deadline) }
    }

    /// From now on SIGTERM and SIGINT close all caches of this process, those opened later included, within
    /// the deadline, and then end the process as these signals do.
    ///
    /// A second signal ends it at once. One that the process ignores, as under nohup(1), stays ignored. A thread
    /// waits for the signals as long as the process lives; the signal handler itself only tells it. Calling this
    /// again changes the deadline.
    ///
    /// Not for processes that handle these signals themselves: they call `close(deadline:)`.
    ///
    /// - Throws: ``CacheError`` with the code `invalidArgument` where the process has a handler for one of
    ///   them, which stays; `inputOutput` where there is no descriptor or thread left.
    public static func closeOnTermination(deadline: Duration = .seconds(5))
        throws(CacheError)
    {
        try TerminationWatch.shared.begin(deadline: deadline)
    }
}
