// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials
import Platform

/// Why a key is a hit or a miss.
public struct KeyExplanation: Sendable, Equatable {
    /// The result of a get.
    @nonexhaustive
    public enum State: Sendable, Equatable {
        /// A value.
        case hit
        /// No entry: the key was never stored, or has been removed.
        case absent
        /// An entry without metadata: a put has just begun, or was killed.
        case unfinished
        /// Metadata that cannot be read.
        case damagedMetadata
        /// A record that the key has no value, as a closure has decided (``Computed/nothing(for:)``).
        case nothing
        /// A value that has expired but is available as a stale one.
        case stale
        /// A value that has expired.
        case expired
        /// An entry whose value is missing.
        case valueGone
        /// A value that does not have the length it was stored with.
        case damagedValue(length: Int64)
    }

    /// The result of a get.
    public let state: State
    /// The entry, even if its value has expired or is missing; nil if there is no readable entry.
    public let entry: CacheEntry?
    /// SHA-256 of the key.
    public let keyDigest: Digest
    /// The last removal of the key, if there is no entry now and the event log still contains the removal; otherwise nil.
    public let lastRemoval: LoggedRemoval?
    /// The process that is computing the value, according to its lock file; nil if none is.
    ///
    /// If that process was killed, the file may still name it until the value is computed again, or until
    /// the next collection.
    public let computedBy: ComputingProcess?
}

extension ComputingProcess {
    /// When the computation began, by the system clock.
    public var since: Date { moment.date }
}

extension SharedCache {
    /// Returns the paths of an entry's two files, for inspection with other tools.
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
