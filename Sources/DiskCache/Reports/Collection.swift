// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

/// Options for a collection.
///
/// By default a collection removes leftovers of killed processes, expired and damaged entries, values that no key refers
/// to, and entries beyond the directory's own limits (``CacheLimits``). A limit that is set here replaces the directory's
/// limit for this collection.
public struct CollectionOptions: Sendable {
    /// The maximum size of the directory on disk, including the cache's own files.
    ///
    /// If the directory is larger, the least recently used entries are evicted.
    public var maximumSize: ByteCount?
    /// The maximum number of entries.
    ///
    /// If there are more, the least recently used ones are evicted.
    public var maximumEntries: Int?
    /// The maximum time since an entry was stored.
    public var maximumAge: Duration?
    /// The maximum time since an entry was last used.
    public var maximumIdleTime: Duration?
    /// The minimum space that must be available on the file system.
    ///
    /// If less is available, the least recently used entries are evicted.
    public var minimumFree: CacheLimits.FreeSpace?
    /// The keys that may be removed, for any reason; all others stay, but count towards the limits.
    ///
    /// Damaged entries, values that no key refers to, and leftovers of killed processes are removed in any case.
    public var selection = KeySelection.all
    /// Whether to remove only expired entries with their values, and temporary files of killed processes, whatever the
    /// limits are.
    public var expiredOnly = false
    /// Whether to delete nothing and only report what would be removed.
    public var isDryRun = false
    /// How long to wait while another process collects; zero to not wait.
    public var patience: Duration = .seconds(60)
    /// The maximum time that the collection takes, including the wait; nil for no limit.
    ///
    /// Expired entries are removed first. If another process collects all the time, the call fails with
    /// ``CacheError/Code/busy``.
    public var timeLimit: Duration?

    /// How fast to work.
    public var pace = Pace.full
    /// A callback that returns true to end the collection early, as if its time limit had passed; nil to never end it
    /// early.
    ///
    /// It is called from time to time, on any thread.
    public var isCancelled: (@Sendable () -> Bool)?

    /// A callback for each key that is removed, with the reason, or that would be removed in a dry run; nil for none.
    ///
    /// It is called after the removal, on any thread of the collection, and on several threads at the same time. It should
    /// return quickly and must not use the cache. ``LoggedRemoval/key`` is nil if the key is not stored
    /// (``CacheConfiguration/KeyNames``) or longer than 1 KiB, or its metadata is damaged. Each removal takes one more
    /// system call.
    public var onRemoval: (@Sendable (LoggedRemoval) -> Void)?

    /// How fast a collection works.
    public enum Pace: Sendable {
        /// As fast as it can, on several threads.
        case full
        /// A fifth of one processor: it works for 4 ms and then rests for 16 ms.
        case sparing
    }

    /// Creates options with the directory's limits, or with another size limit.
    public init(maximumSize: ByteCount? = nil) {
        self.maximumSize = maximumSize
    }

    /// Returns the request for a collection with these options.
    ///
    /// - Parameter limits: the limits of the directory.
    func request(_ limits: CacheLimits) throws(CacheError) -> SweepRequest {
        for (name, value) in [("age", maximumAge), ("idle time", maximumIdleTime), ("patience", patience)] {
            guard value ?? .zero >= .zero else {
                throw CacheError(.invalidArgument, "limit the \(name): it can't be negative: use 0 or more")
            }
        }
        guard maximumEntries ?? 0 >= 0 else {
            throw CacheError(.invalidArgument, "limit the entries: it can't be negative: use 0 or more")
        }
        var request = SweepRequest()
        request.limits = limits
        if let maximumSize { request.limits.maximumSize = maximumSize }
        if let maximumEntries { request.limits.maximumEntries = maximumEntries }
        if let maximumAge { request.limits.maximumAge = maximumAge }
        if let maximumIdleTime { request.limits.maximumIdleTime = maximumIdleTime }
        if let minimumFree { request.limits.minimumFree = minimumFree }
        request.selection = selection
        request.expiredOnly = expiredOnly
        request.isDryRun = isDryRun
        if !expiredOnly, selection == .all { request.partialLife = .zero }
        request.patience = patience
        if pace == .sparing {
            request.pace = .sparing { rest in
                sleepThread(for: rest)
                return true
            }
        }
        request.pace.isCancelled = isCancelled
        request.onRemoval = onRemoval
        if let timeLimit {
            request.pace.deadline = .now + .nanoseconds(max(0, timeLimit.saturatingNanoseconds))
        }
        return request
    }
}
