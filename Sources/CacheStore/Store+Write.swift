// SPDX-License-Identifier: Apache-2.0

package import Platform

extension Store {
    /// Stores `bytes` under `key`, replacing what was there.
    ///
    /// Once this has returned every read that starts afterwards, in any process, gets the value, until
    /// it is replaced, removed, expires or is evicted.
    ///
    /// System calls for equal content over an existing entry: 7 (`fstatat`, two locks and unlocks,
    /// `utimensat`, `setxattrat`). Ten for new content: the object is looked for in vain, created, written,
    /// linked and closed. Three more for a new entry. One less, and two with a new entry, in a row of puts that
    /// were all new (``Novelty``).
    ///
    /// - Parameter willWrite: called when nothing is left but to write the entry: so far nobody else can have
    ///   seen the value. Its stripe is held then.
    /// - Returns: the generation by which the value may be held in memory; nil where it may not.
    @discardableResult
    package func put(
        _ bytes: Span<UInt8>,
        for key: Digest,
        _ record: Record,
        willWrite: (() -> Void)? = nil
    ) throws(StoreError) -> Generation? {
        var publication = try publication(of: record, for: key, if: .none)
        publication.willWrite = willWrite
        let outcome = try publish(publication, bytes)
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
        _ = try encode(draft, for: key)
        return try objects.stage(copying: source, atMost: longestValue)
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
        let claimed = try claimRoom(forLength: staged.content.length, now: record.created)
        defer { giveBack(claimed) }
        var object = Optional(staged.object)
        let outcome = try publish(publication(of: record, for: key, if: .none), &object)
        counters.add(.put)
        return outcome.generation
    }

    /// Stores `bytes` only if the entry is still as `observed` (nil: absent).
    package func put(
        _ bytes: Span<UInt8>,
        for key: Digest,
        _ record: Record,
        ifStill observed: StoredEntry?
    ) throws(StoreError) -> PublishOutcome {
        let publication = try publication(of: record, for: key, if: .unchanged(observed?.bytes))
        let outcome = try publish(publication, bytes)
        if outcome.isPublished { counters.add(.put) }
        return outcome
    }

    /// Gives the entry another record of the same content, if it is still as `observed`, a live entry.
    ///
    /// Counts as an access at `now`.
    package func rewrite(
        _ record: Record,
        for key: Digest,
        ifStill observed: StoredEntry,
        now: Timestamp
    ) throws(StoreError) -> PublishOutcome {
        let publication = try publication(
            of: record,
            for: key,
            accessed: now,
            if: .unchanged(observed.bytes)
        )
        // Before the lock is taken: another process may have left any amount unwritten, and nobody should
        // have to wait for that. Under it the same finds next to nothing left to do.
        try objects.synchronizeIfDurable(record.content.digest)
        var nothing: StagedObject?
        let outcome = try publish(publication, &nothing)
        // A record that is changed in place leaves the file's time as it was.
        if outcome.isPublished { _ = try entries.setAccessTime(of: key, to: now) }
        return outcome
    }

    /// Refuses a record that is too long before anything is written for it.
    private func encode(_ record: Record, for key: Digest) throws(StoreError) -> [UInt8] {
        let bytes = RecordCodec.encode(record, for: key)
        // A draft does not know the length of its content yet, which takes up to ten bytes.
        guard bytes.count + 10 > RecordCodec.maximumSize else { return bytes }
        throw StoreError(
            .invalidArgument,
            "store \(bytes.count) bytes of metadata in",
            path: directory.path
        )
    }

    private func publication(
        of record: Record,
        for key: Digest,
        accessed: Timestamp? = nil,
        if precondition: Precondition
    ) throws(StoreError) -> Publication {
        Publication(
            key: key,
            content: record.content,
            created: record.created,
            bytes: try encode(record, for: key),
            accessed: accessed ?? firstAccess(of: record),
            precondition: precondition
        )
    }

    /// The access time that a new entry must have; nil where the file system's present will do.
    ///
    /// That is a moment later than `created`, and counts as an access where accesses prolong the value's life.
    /// Where the caller's clock is not the file system's it says nothing. Else, for the order of eviction, it
    /// is as good, and a call less.
    private func firstAccess(of record: Record) -> Timestamp? {
        if record.idleLifetime != nil { return record.created }
        let (now, created) = (Timestamp.coarseNow, record.created)
        let isFar =
            created.isEarlier(than: now, byNanoseconds: Self.nearEnough)
            || now.isEarlier(than: created, byNanoseconds: Self.nearEnough)
        return isFar ? created : nil
    }

    /// Nanoseconds by which the order of eviction may err, a second: far less than any access granularity, far more
    /// than a put takes, or than the kernel's coarse clock is late.
    private static var nearEnough: Int64 { 1_000_000_000 }

    /// Publishes with bytes in memory, which are written out only where no object has them yet.
    ///
    /// The look before the stripe is taken saves a turn of it: what it finds is touched under it, and where
    /// that fails, written after all; what it finds missing or unusable is written before it. What is written
    /// although it is there, unseen or made meanwhile, is let go again for the one that is.
    private func publish(
        _ publication: Publication,
        _ bytes: Span<UInt8>
    ) throws(StoreError) -> PublishOutcome {
        let content = publication.content
        var staged: StagedObject?
        if try objects.isWorthTrying(content) {
            // Of the entry alone.
            let claimed = try claimRoom(forLength: 0, now: publication.created)
            defer { giveBack(claimed) }
            try objects.synchronizeIfDurable(content.digest)
            let outcome = try publish(publication, &staged)
            if outcome != .objectMissing { return outcome }
        }
        let claimed = try claimRoom(forLength: content.length, now: publication.created)
        defer { giveBack(claimed) }
        staged = try objects.stage(bytes, as: content.digest)
        return try publish(publication, &staged)
    }

    /// Publishes a record, and its object if that is staged; else it must exist already.
    ///
    /// The bytes have been written before the stripe is taken, so it is held for microseconds however large
    /// the value is; in a durable store as long as the medium takes for the names and the entry.
    private func publish(
        _ publication: Publication,
        _ staged: inout StagedObject?
    ) throws(StoreError) -> PublishOutcome {
        try objectStripes.withLock(.shared, of: publication.content.digest) { () throws(StoreError) in
            guard try establish(publication.content, &staged) else { return .objectMissing }
            return try writeEntry(publication)
        }
    }

    /// Sees to it that the object exists and that no sweep under way deletes it; false where there is none and
    /// none was staged.
    ///
    /// The stripe is held shared, so no sweep can delete it between a look and the next.
    private func establish(
        _ content: Content,
        _ staged: inout StagedObject?
    ) throws(StoreError) -> Bool {
        guard let object = staged.take() else {
            guard try objects.touch(content.digest) == .present else { return false }
            try objects.synchronizeIfDurable(content.digest)
            return true
        }
        if try objects.publish(object, as: content.digest) {
            counters.add(.bytesWritten, content.length)
            control.addUsage(bytes: directory.allocation(of: content.length), entries: 0)
            return true
        }
        // Somebody else has stored it meanwhile, or what is there is damaged.
        if try objects.touch(content.digest) == .present, try objects.isPresent(content) {
            try objects.synchronizeIfDurable(content.digest)
            return true
        }
        try objects.replace(content.digest, with: object)
        counters.add(.bytesWritten, content.length)
        return true
    }

    private func writeEntry(_ publication: Publication) throws(StoreError) -> PublishOutcome {
        let key = publication.key
        // It comes while the kernel sees to the lock.
        control.prefetch(key)
        switch publication.precondition {
        case .none:
            return try entryStripes.withLock(.shared, of: key) { () throws(StoreError) in
                try writeRecord(publication)
            }
        case .unchanged(let expected):
            return try entryStripes.withLock(.exclusive, of: key) { () throws(StoreError) in
                guard try entries.read(key)?.bytes == expected else { return .conflict }
                return try writeRecord(publication)
            }
        }
    }

    private func writeRecord(_ publication: Publication) throws(StoreError) -> PublishOutcome {
        let key = publication.key
        publication.willWrite?()
        let (_, generation) = try writing(key) { () throws(StoreError) in
            let growth = try entries.write(publication.bytes, for: key, accessed: publication.accessed)
            control.addUsage(bytes: growth.bytes, entries: growth.entries)
            if growth.entries == 0 { control.noteReplacement() }
        }
        return .published(generation)
    }

    /// Removes the entry of `key`; false where there was none, or one that was fresh no more at `now`, which a
    /// sweep could have deleted before.
    ///
    /// The object stays until a sweep finds that no entry names it. Four system calls; three where there is no
    /// entry, seven for one that has expired.
    ///
    /// - Parameter name: the key, for the event log.
    package func remove(_ key: Digest, now: Timestamp, name: String? = nil) throws(StoreError) -> Bool {
        while true {
            // Raised also where there is no entry: a sweep may have evicted one whose value others still hold.
            let (finding, _) = try entryStripes.withLock(.shared, of: key) { () throws(StoreError) in
                try writing(key, isRemoval: true) { () throws(StoreError) in try removeIfFresh(key, now) }
            }
            switch finding {
            case .absent: return false
            case .removed:
                noteRemoval()
                log(.removed, of: key, name: name)
                return true
            case .over(let stored):
                // Another may put a fresh value in its place, which has to count as removed.
                if try remove(key, ifStill: stored) { return false }
            case .changed: continue
            }
        }
    }

    /// What ``removeIfFresh(_:_:)`` found.
    private enum RemovalFinding {
        case absent, removed, changed
        /// It is to be deleted, and counts as absent.
        case over(StoredEntry)
    }

    /// Deletes the entry of `key` if it is fresh.
    ///
    /// Beside other writers: one that has replaced it between the look and the deletion is as good as not come yet.
    private func removeIfFresh(_ key: Digest, _ now: Timestamp) throws(StoreError) -> RemovalFinding {
        guard let stored = try entries.read(key) else { return .absent }
        guard stored.record != nil else { return .over(stored) }
        guard let freshness = try freshness(of: stored, key, now) else { return .changed }
        guard freshness == .fresh else { return .over(stored) }
        return try entries.delete(key) ? .removed : .absent
    }

    /// Removes the entry if it is still as `observed` (nil: absent); false where it is not.
    ///
    /// - Parameter isLogged: whether to tell the event log; else the caller does, of many at once.
    package func remove(
        _ key: Digest,
        ifStill observed: StoredEntry?,
        isLogged: Bool = true
    ) throws(StoreError) -> Bool {
        var isRemoved = false
        let isAsObserved = try entryStripes.withLock(.exclusive, of: key) { () throws(StoreError) in
            guard try entries.read(key)?.bytes == observed?.bytes else { return false }
            // Raised also where there is no entry, as by any other remove.
            (isRemoved, _) = try writing(key, isRemoval: true) { () throws(StoreError) in
                try entries.delete(key)
            }
            if isRemoved { noteRemoval() }
            return true
        }
        if isRemoved, isLogged { log(.removed, of: key, name: observed?.record?.key) }
        return isAsObserved
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
        control.noteReplacement()
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
