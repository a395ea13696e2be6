// SPDX-License-Identifier: Apache-2.0

package import Platform

/// On what a record is published.
enum Precondition {
    /// Whatever is there.
    case none
    /// The entry's record still has these bytes; nil: there still is no entry.
    case unchanged([UInt8]?)
}

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

extension Store {
    /// Stores `bytes` under `key`, replacing what was there.
    ///
    /// Once this has returned every read that starts afterwards, in any process, gets the value, until
    /// it is replaced, removed, expires or is evicted.
    ///
    /// System calls for equal content over an existing entry: 7 (two locks and unlocks, `utimensat`,
    /// `fstatat`, `setxattrat`). Twelve for new content: the object is looked for in vain, created,
    /// written, linked and closed, with a second turn of its stripe. Four more for a new entry.
    ///
    /// The generation by which the value may be held in memory; nil where it may not.
    @discardableResult
    package func put(
        _ bytes: Span<UInt8>,
        for key: Digest,
        _ record: Record
    ) throws(StoreError) -> Generation? {
        let outcome = try publish(record, for: key, bytes, if: .none)
        counters.add(.put)
        return outcome.generation
    }

    /// Copies a file's bytes, from its offset to its end, into an object that has no name yet.
    ///
    /// `draft` is a record such as the value will have, refused now if it is too long.
    package func stage(
        copying source: borrowing FileDescriptor,
        for key: Digest,
        _ draft: Record
    ) throws(StoreError) -> StagedCopy {
        try checkSize(of: draft, for: key)
        return try objects.stage(copying: source)
    }

    /// Stores what was staged; the record must be of its content.
    ///
    /// The generation by which the value may be held in memory; nil where it may not.
    @discardableResult
    package func put(
        _ staged: consuming StagedCopy,
        for key: Digest,
        _ record: Record
    ) throws(StoreError) -> Generation? {
        let outcome = try publish(record, for: key, staged: staged.object, if: .none)
        counters.add(.put)
        return outcome.generation
    }

    /// Refuses a record that is too long before anything is written for it.
    private func checkSize(of record: Record, for key: Digest) throws(StoreError) {
        let size = RecordCodec.encode(record, for: key).count
        // A draft does not know the length of its content yet, which takes up to ten bytes.
        guard size + 10 > RecordCodec.maximumSize else { return }
        throw StoreError(.invalidArgument, "store \(size) bytes of metadata in", path: directory.path)
    }

    /// Stores `bytes` only if the entry is still as `observed` (nil: absent).
    package func put(
        _ bytes: Span<UInt8>,
        for key: Digest,
        _ record: Record,
        ifStill observed: StoredEntry?
    ) throws(StoreError) -> PublishOutcome {
        let outcome = try publish(record, for: key, bytes, if: .unchanged(observed?.bytes))
        if outcome.isPublished { counters.add(.put) }
        return outcome
    }

    /// Gives the entry another record of the same content, if it is still as `observed`.
    ///
    /// Counts as an access at `now`.
    package func rewrite(
        _ record: Record,
        for key: Digest,
        ifStill observed: StoredEntry,
        now: Timestamp
    ) throws(StoreError) -> PublishOutcome {
        let outcome = try publish(record, for: key, accessed: now, if: .unchanged(observed.bytes))
        // A record that is changed in place leaves the file's time as it was.
        if outcome.isPublished { _ = try entries.setAccessTime(of: key, to: now) }
        return outcome
    }

    /// Publishes with bytes in memory, which are written out only where no object has them yet.
    private func publish(
        _ record: Record,
        for key: Digest,
        _ bytes: Span<UInt8>,
        if precondition: Precondition
    ) throws(StoreError) -> PublishOutcome {
        try checkSize(of: record, for: key)
        let outcome = try publish(record, for: key, accessed: record.created, if: precondition)
        if outcome != .objectMissing { return outcome }
        return try publish(
            record,
            for: key,
            staged: objects.stage(bytes, as: record.content.digest),
            if: precondition
        )
    }

    /// Publishes a record of an object that must exist already.
    private func publish(
        _ record: Record,
        for key: Digest,
        accessed: Timestamp,
        if precondition: Precondition
    ) throws(StoreError) -> PublishOutcome {
        let bytes = RecordCodec.encode(record, for: key)
        // Before the lock is taken: another process may have left any amount unwritten, and nobody should
        // have to wait for that. Under it the same finds next to nothing left to do.
        try objects.synchronizeIfDurable(record.content.digest)
        return try objectStripes.withLock(.shared, of: record.content.digest) { () throws(StoreError) in
            guard try objects.touch(record.content) == .present else { return .objectMissing }
            try objects.synchronizeIfDurable(record.content.digest)
            return try writeEntry(bytes, for: key, accessed, if: precondition)
        }
    }

    /// Publishes an object and its record.
    ///
    /// The bytes have been written before the stripe is taken, so it is held for microseconds however large
    /// the value is; in a durable store as long as the medium takes for the names and the entry.
    private func publish(
        _ record: Record,
        for key: Digest,
        staged: consuming StagedObject,
        if precondition: Precondition
    ) throws(StoreError) -> PublishOutcome {
        let bytes = RecordCodec.encode(record, for: key)
        let digest = record.content.digest
        var staged = Optional(staged)
        return try objectStripes.withLock(.shared, of: digest) { () throws(StoreError) in
            try establish(record.content, &staged)
            return try writeEntry(bytes, for: key, record.created, if: precondition)
        }
    }

    /// Sees to it that the object exists and that no sweep under way deletes it.
    ///
    /// The stripe is held shared, so no sweep can delete it between a look and the next.
    private func establish(
        _ content: Content,
        _ staged: inout StagedObject?
    ) throws(StoreError) {
        guard let object = staged.take() else { return }
        if try objects.publish(object, as: content.digest) {
            counters.add(.bytesWritten, content.length)
            return control.addUsage(bytes: directory.allocation(of: content.length), entries: 0)
        }
        // Somebody else has stored it meanwhile. Only by hand can it be gone again.
        if try objects.touch(content) == .present {
            return try objects.synchronizeIfDurable(content.digest)
        }
        try objects.replace(content.digest, with: object)
        counters.add(.bytesWritten, content.length)
    }

    private func writeEntry(
        _ bytes: [UInt8],
        for key: Digest,
        _ accessed: Timestamp,
        if precondition: Precondition
    ) throws(StoreError) -> PublishOutcome {
        switch precondition {
        case .none:
            return try entryStripes.withLock(.shared, of: key) { () throws(StoreError) in
                try writeRecord(bytes, for: key, accessed)
            }
        case .unchanged(let expected):
            return try entryStripes.withLock(.exclusive, of: key) { () throws(StoreError) in
                guard try entries.read(key)?.bytes == expected else { return .conflict }
                return try writeRecord(bytes, for: key, accessed)
            }
        }
    }

    private func writeRecord(
        _ bytes: [UInt8],
        for key: Digest,
        _ accessed: Timestamp
    ) throws(StoreError) -> PublishOutcome {
        let (_, generation) = try writing(key) { () throws(StoreError) in
            let growth = try entries.write(bytes, for: key, accessed: accessed)
            control.addUsage(bytes: growth.bytes, entries: growth.entries)
        }
        return .published(generation)
    }

    /// Removes the entry of `key`; false where there was none.
    ///
    /// The object stays until a sweep finds that no entry names it. Three system calls.
    package func remove(_ key: Digest) throws(StoreError) -> Bool {
        // Raised also where there is no entry: a sweep may have evicted one whose value others still hold.
        let (isRemoved, _) = try entryStripes.withLock(.shared, of: key) { () throws(StoreError) in
            try writing(key, isRemoval: true) { () throws(StoreError) in try entries.delete(key) }
        }
        if isRemoved { noteRemoval() }
        return isRemoved
    }

    /// Removes the entry if it is still as `observed` (nil: absent); false where it is not.
    package func remove(_ key: Digest, ifStill observed: StoredEntry?) throws(StoreError) -> Bool {
        try entryStripes.withLock(.exclusive, of: key) { () throws(StoreError) in
            guard try entries.read(key)?.bytes == observed?.bytes else { return false }
            // Raised also where there is no entry, as by any other remove.
            let (isRemoved, _) = try writing(key, isRemoval: true) { () throws(StoreError) in
                try entries.delete(key)
            }
            if isRemoved { noteRemoval() }
            return true
        }
    }

    /// Has everybody who holds a value of `key` in memory look at its entry again, which is gone: what a sweep
    /// evicts others may still hold.
    package func invalidate(_ key: Digest) throws(StoreError) {
        try entryStripes.withLock(.shared, of: key) { () throws(StoreError) in
            _ = try writing(key, isRemoval: true) {}
        }
    }

    private func noteRemoval() {
        counters.add(.removal)
        control.addUsage(bytes: -entries.usualAllocation, entries: -1)
    }

    /// Counts as an access now.
    ///
    /// False where there is no such entry. Three system calls.
    package func touch(_ key: Digest, now: Timestamp) throws(StoreError) -> Bool {
        try entryStripes.withLock(.shared, of: key) { () throws(StoreError) in
            try entries.setAccessTime(of: key, to: now)
        }
    }
}
