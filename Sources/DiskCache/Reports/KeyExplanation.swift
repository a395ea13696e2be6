// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// Why a key is a hit now, or is not.
public struct KeyExplanation: Sendable, Equatable {
    /// What a get would find.
    @nonexhaustive
    public enum State: Sendable, Equatable {
        /// The value.
        case hit
        /// Nothing: it was never stored here, or has been removed.
        case absent
        /// A put that has just begun, or was killed.
        case unfinished
        /// Metadata that can't be read.
        case damagedMetadata
        /// A value that has expired, and can still be had as a stale one.
        case stale
        /// A value that has expired.
        case expired
        /// An entry whose value is gone.
        case valueGone
        /// A value of another length than it was stored with.
        case damagedValue(length: Int64)
    }

    /// What a get would find.
    public let state: State
    /// What is known of the key, also of a value that has expired or is gone; nil where there is nothing, or
    /// nothing that can be read.
    public let entry: CacheEntry?
    /// SHA-256 of the key.
    public let keyDigest: ContentDigest
    /// The last time that the key was removed, where there is nothing now and the event log knows.
    public let lastRemoval: LoggedRemoval?
    /// Who computes the value now, as far as the file of its lock tells; nil: nobody.
    ///
    /// The file of a process that was killed may still name it until somebody computes the value again or the
    /// next collection.
    public let computedBy: ComputingProcess?
    /// Where it stands in the order of eviction; nil where there is nothing, or nobody has asked for it.
    public let rank: Rank?

    /// Where a key stands in the order in which values go when space runs short.
    public struct Rank: Sendable, Equatable, Codable {
        /// How many keys were used longer ago, and go before it.
        public let usedLongerAgo: Int
        /// How many there are.
        public let entries: Int
    }
}

extension SharedCache {
    /// Where the two files of an entry are, for those who want to look with their own tools.
    package func paths(of entry: CacheEntry) -> (entry: String, object: String) {
        (
            "\(path)/\(StoreLayout.entries)/\(StoreLayout.path(of: entry.keyDigest.digest))",
            "\(path)/\(StoreLayout.objects)/\(StoreLayout.path(of: entry.digest.digest))"
        )
    }

    /// Says what a get of `key` would find on disk now, and why.
    ///
    /// Doesn't count as an access, and reads no value: damage that leaves the value's length as it was is found by
    /// reading only. Six system calls; where there is nothing, and the directory keeps an event log, that is read.
    ///
    /// - Parameters:
    ///   - key: any string but an empty one.
    ///   - ranking: whether to tell where the key stands in the order of eviction, which takes two system calls
    ///     for each key there is, about 2 s for a million, and memory for the names of a 256th of them.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func explanation(forKey key: String, ranking: Bool = false) throws(CacheError) -> KeyExplanation {
        let digest = try settledDigest(ofKey: key)
        let (explanation, rank, now) = try withStore { (store, now) throws(StoreError) in
            let rank = ranking ? try store.evictionRank(of: digest, now: now) : nil
            return (try store.explain(digest, now: now), rank, now)
        }
        var removal: LoggedRemoval?
        if explanation.condition == .absent { removal = try removals(forKey: key, limit: 1)?.last }
        return KeyExplanation(
            state: KeyExplanation.State(explanation.condition),
            entry: explanation.record.map { record in
                CacheEntry(record, keyDigest: digest, key: key, accessed: explanation.accessed, now: now)
            },
            keyDigest: ContentDigest(digest),
            lastRemoval: removal,
            computedBy: try computingProcess(forKey: key),
            rank: rank.map { KeyExplanation.Rank(usedLongerAgo: $0.usedLongerAgo, entries: $0.entries) }
        )
    }
}

extension KeyExplanation.State {
    fileprivate init(_ condition: EntryCondition) {
        self =
            switch condition {
            case .hit: .hit
            case .absent: .absent
            case .unfinished: .unfinished
            case .damagedRecord: .damagedMetadata
            case .stale: .stale
            case .expired: .expired
            case .objectGone: .valueGone
            case .objectOfLength(let length): .damagedValue(length: length)
            }
    }
}
