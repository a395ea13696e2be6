// SPDX-License-Identifier: Apache-2.0

public import CacheStore

/// A background action of the cache, or a failure of one.
///
/// More cases may be added, so switches over it need `@unknown default`.
@nonexhaustive
public enum CacheEvent: Sendable {
    /// A value has left this process's memory tier.
    ///
    /// It may still be on disk. `value` is the value, `Data` or the value of a typed view, if
    /// ``CacheConfiguration/Memory/eventsCarryValues`` is set; otherwise nil. A ``DiscardableValue`` that has dropped the
    /// part that it can rebuild comes without that part.
    case removedFromMemory(key: String, cause: MemoryRemovalCause, cost: Int, value: (any Sendable)?)
    /// A value that was put with write-behind could not be published, and is lost.
    case publishFailed(key: String, error: CacheError)
    /// A background computation failed; `reason` describes the error.
    case refreshFailed(key: String, reason: String)
    /// This process's janitor has collected garbage.
    case collected(CollectionReport)
    /// The janitor could not do its work, and will try again.
    case collectionFailed(CacheError)
    /// The directory's `config.json` cannot be read or parsed: the limits stay as they were.
    case configurationFailed(CacheError)
    /// The directory's limits are too low for the values in use: evicted values are soon requested again.
    ///
    /// Sent at most once an hour, by a process that collects, with the counts since its previous collection.
    case limitsBelowWorkingSet(CacheActivity)
    /// The directory has other limits than those given when the cache was opened.
    ///
    /// The directory's limits apply. Sent once, when the cache is opened: to the callback at once, and to the first stream
    /// of events as its first event.
    case limitsDiffer(given: CacheLimits, present: CacheLimits)
    /// The directory was deleted or replaced while the cache was open.
    ///
    /// The cache continues in the directory that is now at its path.
    case directoryReplaced
    /// A server returned a value that does not match its digest, or is malformed.
    ///
    /// It counts as a miss, and is removed from the server if this process may write there.
    case remoteValueWrong(keyDigest: Digest, server: String, reason: String)
}
