// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

/// What a collection does.
///
/// With the defaults it removes what nobody needs, that is leftovers of killed processes, expired and damaged
/// entries, and bytes that no key names, and what exceeds the directory's own limits (``CacheLimits``). A limit
/// given here replaces the directory's for this collection.
public struct CollectionOptions: Sendable {
    /// Bytes on disk that the directory may take, its own files included.
    ///
    /// Beyond that the least recently used entries go.
    public var maximumSize: ByteCount?
    /// Entries that may stay.
    ///
    /// Beyond that the least recently used ones go.
    public var maximumEntries: Int?
    /// How long ago an entry may have been stored.
    public var maximumAge: Duration?
    /// How long ago an entry may have been used last.
    public var maximumIdleTime: Duration?
    /// What must be available on the file system.
    ///
    /// If less is, the least recently used entries go.
    public var minimumFree: CacheLimits.FreeSpace?
    /// The keys that may be removed, for whatever reason; all others stay, though they count for the limits.
    ///
    /// Damaged entries, bytes that no key names and leftovers go in any case.
    public var selection = KeySelection.all
    /// Remove only expired entries and their bytes, and temporary files of killed processes, whatever the
    /// limits are.
    public var expiredOnly = false
    /// Decide everything and delete nothing.
    public var isDryRun = false
    /// How long to wait while another process collects; zero for not at all.
    public var patience: Duration = .seconds(60)
    /// How long to take at most, including the wait; nil for as long as it takes.
    ///
    /// Expired entries are removed first. If another process collects all the time, that is ``CacheError/Code/busy``.
    public var timeLimit: Duration?

    /// How fast to work.
    public var pace = Pace.full
    /// Called now and then, on any thread: if it returns true the collection ends early, as if its time was up;
    /// nil to never end it early.
    public var isCalledOff: (@Sendable () -> Bool)?

    /// Called for each key that is removed, with the reason, or that would be if this is a dry run; nil to do without.
    ///
    /// On any thread of the collection, several at a time, once the key is gone; it should return soon, and must not
    /// use the cache. ``LoggedRemoval/key`` is nil if the key is not stored (``CacheConfiguration/KeyNames``) or longer
    /// than 1 KiB, or its metadata is damaged. One system call more for each removal.
    public var onRemoval: (@Sendable (LoggedRemoval) -> Void)?

    /// How fast a collection works.
    public enum Pace: Sendable {
        /// As fast as it can, on several threads.
        case full
        /// A fifth of one processor: it works for 4 ms and then rests for 16 ms.
        case sparing
    }

    /// The directory's limits, or another size limit.
    public init(maximumSize: ByteCount? = nil) {
        self.maximumSize = maximumSize
    }

    /// - Parameter limits: those of the directory.
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
        request.pace.isCalledOff = isCalledOff
        request.onRemoval = onRemoval
        if let timeLimit {
            request.pace.deadline = .now + .nanoseconds(max(0, timeLimit.saturatingNanoseconds))
        }
        return request
    }
}
