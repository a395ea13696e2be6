// SPDX-License-Identifier: Apache-2.0

import Platform

/// How publishing ended.
package enum PublishOutcome: Sendable, Equatable {
    /// What was written may be held in memory by this word of the generation table; nil where it may not,
    /// because another was writing meanwhile or there is no such table.
    case published(Generation?)
    /// The precondition no longer held.
    case conflict
    /// The record names an object that is gone, and there were no bytes to make it from.
    case objectMissing

    package var isPublished: Bool {
        if case .published = self { true } else { false }
    }

    /// By which the value may be held; nil where it may not, or was not published.
    package var generation: Generation? {
        if case .published(let generation) = self { generation } else { nil }
    }
}

/// A record on its way to its entry.
struct Publication {
    let key: Digest
    let content: Content
    /// By the caller's clock.
    let created: Timestamp
    /// ``Record/removableAt``.
    let removableAt: Timestamp?
    /// The present by that clock: another moment for what is written anew, or comes from another machine.
    let moment: Timestamp
    /// Whether other machines are told nothing of it.
    let staysHere: Bool
    /// The record as it will be on disk.
    let bytes: [UInt8]
    /// What the access time of a new entry must be; nil: any near the present will do.
    let accessed: Timestamp?
    /// The entry that must still be there, `.some(nil)` where there must still be none; nil: it is published whatever is
    /// there.
    let expected: StoredEntry??
    /// Called when nothing is left but to write the entry, before the writer is added to the word of the key.
    var willWrite: (() -> Void)?
    /// Of what came from another machine: the word of the key from before that one was asked, by which nobody
    /// may have written since.
    var seen: Generation?

    /// Whether it is published whatever is there.
    var isUnconditional: Bool { expected == nil && seen == nil }

    /// - Parameter accessed: the access time of a new entry, where it is not to be told by the record.
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
        // A draft does not know the length of its content yet, which takes up to ten bytes, and the number of the rules in
        // force takes as many, and two for the item and three for the length of all items.
        if bytes.count + 25 > RecordCodec.maximumSize {
            let operation = "store \(bytes.count) bytes of metadata in"
            throw CacheError(.invalidArgument, to: operation, path: directory.path)
        }
    }

    /// The bytes where the record has to say that rules up to this number are not meant for it, as its time of creation
    /// does not.
    func recordBytes(following rule: UInt64) -> [UInt8] {
        // They are those of a record.
        guard var record = RecordCodec.decode(bytes, for: key) else { return bytes }
        record.followedRule = rule
        return RecordCodec.encode(record, for: key)
    }

    /// The access time that a new entry must have; nil where the file system's present will do.
    ///
    /// That is a moment later than `created`, and counts as an access where accesses prolong the value's life.
    /// Where the caller's clock is not the file system's it says nothing. Else, for the order of eviction, it
    /// is as good, and a call less.
    private static func firstAccess(of record: Record) -> Timestamp? {
        if record.idleLifetime != nil { return record.created }
        let (now, created) = (Timestamp.coarseNow, record.created)
        let isFar =
            created.advanced(byNanoseconds: nearEnough) < now
            || now.advanced(byNanoseconds: nearEnough) < created
        return isFar ? created : nil
    }

    /// Nanoseconds by which the order of eviction may err, a second: far less than any access granularity, far more
    /// than a put takes, or than the kernel's coarse clock is late.
    private static let nearEnough: Int64 = 1_000_000_000
}
