// SPDX-License-Identifier: Apache-2.0

/// Something that a cache did on its own, or could not do when nobody was waiting for it.
///
/// More may be added, so switches over it need `@unknown default`.
@nonexhaustive
public enum CacheEvent: Sendable {
    /// A value has left this process's memory tier; on disk it may well still be.
    case removedFromMemory(key: String, cause: RemovalCause, cost: Int)
    /// A value that was put with write-behind could not be published: it is lost.
    case publishFailed(key: String, error: CacheError)
    /// A computation in the background, for a value that was given out stale or early, failed with this
    /// error's description.
    case refreshFailed(key: String, reason: String)
    /// The janitor of this process has collected garbage.
    case collected(CollectionReport)
    /// The janitor could not do its work; it tries again.
    case collectionFailed(CacheError)
    /// The directory's `config.json` can't be read, or is none: the limits stay as they were.
    case configurationFailed(CacheError)
    /// The directory's limits are below what is in use: what was evicted is wanted again soon.
    ///
    /// Told at most once an hour, by a process that collects; with what was done since its collection before.
    case limitsBelowWorkingSet(CacheActivity)
    /// The directory has other limits than those given when the cache was opened: they count, and those given don't.
    ///
    /// Told once, when the cache is opened: to the callback at once, and to the first stream of events as its first.
    case limitsDiffer(given: CacheLimits, present: CacheLimits)
    /// The directory was deleted or replaced while open; the cache goes on in the one that is there now.
    case directoryReplaced
}

extension CacheEvent {
    /// Why a value left the memory tier.
    @nonexhaustive
    public enum RemovalCause: String, Sendable, CaseIterable, Codable, CodingKeyRepresentable {
        /// It was removed by a call.
        case explicit
        /// This process stored another value for its key.
        case replaced
        /// Its time was over.
        case expired
        /// Others needed its room.
        case cost
        /// There were more values than the limit.
        case count
        /// Another process has changed it, or something that shares its place in the table of generations.
        case invalidated
        /// The system ran short of memory.
        case pressure
    }
}
