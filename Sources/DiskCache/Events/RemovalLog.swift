// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials

/// The removal of a key, as recorded in the cache's event log.
public struct LoggedRemoval: Sendable, Equatable {
    /// Why a key was removed.
    @nonexhaustive
    public enum Cause: Sendable, Hashable {
        /// By a collection, for this reason.
        case collected(RemovalReason)
        /// By a call that removed this key.
        case removed
        /// By a call that removed all keys, or all with a tag.
        case cleared
        /// By a reader that found the value or its metadata damaged, or by `verify`.
        case repaired
    }

    /// When it was removed.
    public let time: Date
    /// The process that removed it.
    public let process: Int32
    /// Why it was removed.
    public let cause: Cause
    /// SHA-256 of the key.
    public let keyDigest: ContentDigest
    /// The key; nil if it is not stored, is longer than 1 KiB, or was removed by a collection.
    public let key: String?

    init(_ event: RemovalEvent, key: String?) {
        time = event.time.date
        process = event.process
        cause =
            switch event.cause {
            case .swept(let reason): .collected(RemovalReason(reason))
            case .removed: .removed
            case .cleared: .cleared
            case .repaired: .repaired
            }
        keyDigest = ContentDigest(event.key.digest)
        self.key = key ?? event.key.name
    }
}

extension SharedCache {
    /// Removals by any process, as far back as the directory's event log goes, the newest last; nil if there is
    /// no log.
    ///
    /// Expired values are logged when their space is reclaimed. Values that are overwritten are not logged.
    ///
    /// - Parameters:
    ///   - key: return only removals of this key.
    ///   - limit: return only this many of the newest.
    /// - Complexity: O(*n*) in the log's bytes; memory for about twice what is returned.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func removals(
        forKey key: String? = nil,
        limit: Int = .max
    ) throws(CacheError) -> [LoggedRemoval]? {
        guard limit >= 0 else {
            throw CacheError(.invalidArgument, "limit the removals: it can't be negative: use 0 or more")
        }
        var digest: Digest?
        if let key { digest = try self.digest(ofKey: key) }
        return try withStore { (store, _) throws(StoreError) in
            var newest: [LoggedRemoval] = []
            let isThere = try EventLog.forEach(in: store.directory) { event in
                if digest ?? event.key.digest == event.key.digest {
                    newest.append(LoggedRemoval(event, key: key))
                    // Only when there are twice as many, so that it costs O(1) a removal.
                    if newest.count / 2 > limit { newest.removeFirst(newest.count - limit) }
                }
            }
            return isThere ? Array(newest.suffix(limit)) : nil
        }
    }
}
