// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials
import Platform

/// Why a key is a hit or a miss.
public struct KeyExplanation: Sendable, Equatable {
    /// The result of a get.
    @nonexhaustive
    public enum State: Sendable, Equatable {
        /// The value.
        case hit
        /// Nothing: it was never stored, or has been removed.
        case absent
        /// An entry without metadata: a put has just begun, or was killed.
        case unfinished
        /// Metadata that can't be read.
        case damagedMetadata
        /// That there is no value, which a computation has found.
        case nothing
        /// A value that has expired and is available as a stale one.
        case stale
        /// A value that has expired.
        case expired
        /// An entry whose value is gone.
        case valueGone
        /// A value that doesn't have the length it was stored with.
        case damagedValue(length: Int64)
    }

    /// The result of a get.
    public let state: State
    /// The entry, even if its value has expired or is gone; nil if there is none, or none that can be read.
    public let entry: CacheEntry?
    /// SHA-256 of the key.
    public let keyDigest: Digest
    /// The key's last removal, if there is nothing now and the event log knows of it.
    public let lastRemoval: LoggedRemoval?
    /// The process that is computing the value, as far as its lock's file says; nil if none is.
    ///
    /// If that process was killed, the file may still name it until the value is computed again, or until
    /// the next collection.
    public let computedBy: ComputingProcess?
    /// Its place in the order of eviction; nil if there is nothing, or it was not asked for.
    public let rank: Rank?

    /// A key's place in the order of eviction.
    public struct Rank: Sendable, Equatable, Codable {
        /// How many keys were used less recently, and would be evicted first.
        public let usedLongerAgo: Int
        /// How many keys there are.
        public let entries: Int
    }
}

extension ComputingProcess {
    /// Since when, by the system's clock.
    public var since: Date { moment.date }
}

extension SharedCache {
    /// The paths of an entry's two files, for people who look with their own tools.
    package func paths(of entry: CacheEntry) -> (entry: String, object: String) {
        (
            "\(path)/\(StoreLayout.entries)/\(StoreLayout.path(of: entry.keyDigest))",
            "\(path)/\(StoreLayout.objects)/\(StoreLayout.path(of: entry.digest))"
        )
    }
}

extension KeyExplanation.State {
    init(_ explanation: EntryExplanation, at now: Timestamp) {
        guard let record = explanation.stored.record,
            let freshness = explanation.stored.freshness(at: now, accessed: explanation.accessed)
        else {
            self = explanation.stored.bytes.isEmpty ? .unfinished : .damagedMetadata
            return
        }
        if record.isNothing, freshness == .fresh {
            self = .nothing
            return
        }
        self =
            switch (freshness, explanation.objectLength) {
            case (.expired, _): .expired
            case (_, nil): .valueGone
            case (_, let length?) where length != record.content.length: .damagedValue(length: length)
            case (.fresh, _): .hit
            case (.stale, _): .stale
            }
    }
}
