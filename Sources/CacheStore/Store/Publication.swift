// SPDX-License-Identifier: Apache-2.0

import Platform

/// The outcome of a publication.
package enum PublishOutcome: Sendable, Equatable {
    /// The value may be held in memory under this word of the generation table.
    ///
    /// It is nil if the value may not be held, because another process was writing meanwhile or there is no such table.
    case published(Generation?)
    /// The precondition no longer held.
    case conflict
    /// The record names an object that is missing, and there were no bytes to create it from.
    case objectMissing

    package var isPublished: Bool {
        if case .published = self { true } else { false }
    }

    /// The generation under which the value may be held; nil if it may not, or was not published.
    package var generation: Generation? {
        if case .published(let generation) = self { generation } else { nil }
    }
}

/// A record to be published as an entry.
struct Publication {
    let key: Digest
    let content: Content
    /// The time of creation by the caller's clock.
    let created: Timestamp
    /// The time as in ``Record/removableAt``.
    let removableAt: Timestamp?
    /// The present by that clock, which differs from ``created`` if the value is rewritten or comes from another machine.
    let moment: Timestamp
    /// Whether the value is kept from other machines.
    let staysHere: Bool
    /// The record as it is stored on disk.
    let bytes: [UInt8]
    /// The access time of a new entry; nil if any time near the present will do.
    let accessed: Timestamp?
    /// The entry that must still exist, or `.some(nil)` if there must be no entry; nil to publish unconditionally.
    let expected: StoredEntry??
    /// Called just before the entry is written and the writer is added to the word of the key.
    var willWrite: (() -> Void)?
    /// For a value from another machine: the word of the key before that machine was asked, which must be unchanged.
    var seen: Generation?

    /// Whether it is published regardless of the present entry.
    var isUnconditional: Bool { expected == nil && seen == nil }

    /// Creates a publication of a record.
    ///
    /// - Parameter accessed: the access time of a new entry, if it does not follow from the record.
    /// - Throws: ``CacheError/Code/invalidArgument`` for a record that is too long, before anything is written for it.
    init(
        of record: Record,
        for key: Digest,
        accessed: Timestamp? = nil,
        ifStill expected: StoredEntry?? = nil,
        in directory: StoreDirectory
    ) throws(CacheError) {
        self.key = key
        self.expected = expected
        content = record.content
        created = record.created
        removableAt = record.removableAt
        staysHere = record.staysHere
        moment = accessed ?? record.created
        bytes = RecordCodec.encode(record, for: key)
        self.accessed = accessed ?? Self.firstAccess(of: record)
        // A draft does not know the length of its content yet, which takes up to ten bytes. The number of the rules in force
        // takes as many, and two for the item and three for the length of all items.
        if bytes.count + 25 > RecordCodec.maximumSize {
            let operation = "store \(bytes.count) bytes of metadata in"
            throw CacheError(.invalidArgument, to: operation, path: directory.path)
        }
    }

    /// Returns the bytes of a record that states that rules up to this number do not apply to it, if its creation time does
    /// not imply that.
    func recordBytes(following rule: UInt64) -> [UInt8] {
        // The bytes always decode, as they were encoded from a record.
        guard var record = RecordCodec.decode(bytes, for: key) else { return bytes }
        record.followedRule = rule
        return RecordCodec.encode(record, for: key)
    }

    /// Returns the access time that a new entry must have; nil if the file system's present will do.
    ///
    /// The file system's present is a moment later than `created`, and counts as an access if accesses prolong the value's
    /// life. It is meaningless if the caller's clock is not the file system's. Otherwise it is as good for the order of
    /// eviction, and saves a system call.
    private static func firstAccess(of record: Record) -> Timestamp? {
        if record.idleLifetime != nil { return record.created }
        let (now, created) = (Timestamp.coarseNow, record.created)
        let isFar =
            created.advanced(byNanoseconds: nearEnough) < now
            || now.advanced(byNanoseconds: nearEnough) < created
        return isFar ? created : nil
    }

    /// The error that the order of eviction may have, in nanoseconds: one second.
    ///
    /// This is far less than any access granularity, and far more than a put takes or than the kernel's coarse clock lags.
    private static let nearEnough: Int64 = 1_000_000_000
}
