// SPDX-License-Identifier: Apache-2.0

package import Platform

extension Store {
    /// Stores `bytes` under `key`, replacing any value.
    ///
    /// Every read that starts after this has returned, in any process, gets the value, until it is replaced, removed,
    /// evicted or expires.
    ///
    /// System calls for equal content over an existing entry: 11 (`fstatat`, two locks and unlocks; `openat2`, `utimensat`,
    /// `close` for the object; `openat2`, `fsetxattr`, `close` for the entry). 14 for new content: the object is looked up,
    /// not found, created, written, linked and closed. One more for a new entry. In a series of puts that were all new
    /// (``Novelty``) one less, and two less with a new entry.
    ///
    /// - Parameters:
    ///   - bytes: the value.
    ///   - key: the key's digest.
    ///   - record: the record of the value.
    ///   - terms: how to wait if there is no room.
    ///   - willWrite: called with the stripe held, just before the entry is written: no other process can have seen the
    ///     value before. Called again if the disk was full.
    /// - Returns: the generation under which the value may be held in memory; nil if it may not.
    @discardableResult
    package func put(
        _ bytes: Span<UInt8>,
        for key: Digest,
        _ record: Record,
        _ terms: RoomTerms = RoomTerms(),
        willWrite: (() -> Void)? = nil
    ) throws(CacheError) -> Generation? {
        var publication = try Publication(of: record, for: key, in: directory)
        publication.willWrite = willWrite
        let outcome = try publish(publication, bytes, terms)
        counters.add(.put)
        return outcome.generation
    }

    /// Copies a file's bytes, from its offset to its end, into an object that has no name yet.
    ///
    /// If the length of the file is known it claims room first. If the disk is full it makes space and continues to copy
    /// (``Room/makeSpace(_:now:_:)``).
    ///
    /// - Parameter draft: a record like the value's; the call fails now if it is too long.
    package func stage(
        copying source: borrowing FileDescriptor,
        for key: Digest,
        _ draft: Record
    ) throws(CacheError) -> StagedCopy {
        let publication = try Publication(of: draft, for: key, in: directory)
        let now = draft.created
        let length = try describing("read the length of a value for", directory.path) { () throws(Errno) in
            try source.lengthLeft()
        }
        var terms = RoomTerms()
        var claim = try length.flatMap { (length) throws(CacheError) in
            try claimRoom(
                forLength: Int(clamping: length),
                record: publication.bytes.count,
                for: publication,
                now: now,
                &terms
            )
        }
        var wait = room.wait(terms)
        var copied: Int64 = 0
        do throws(CacheError) {
            var staged = try objects.stage(copying: source, atMost: room.longestValue) { left in
                // No other process can free this room. It is claimed again when the value is complete.
                room.giveBack(claim.take())
                // Twice as much each time, up to 1 TiB, so that a long pipe needs few collections.
                copied = min(max(copied * 2, Int64(left)), 1 << 40)
                return room.makeSpace(copied, now: now, &wait)
            }
            staged.claim = claim
            return staged
        } catch {
            room.giveBack(claim)
            throw error
        }
    }

    /// Stores a staged value.
    ///
    /// - Parameter record: a record of the content of `staged`.
    /// - Returns: the generation under which the value may be held in memory; nil if it may not.
    @discardableResult
    package func put(
        _ staged: consuming StagedCopy,
        for key: Digest,
        _ record: Record
    ) throws(CacheError) -> Generation? {
        let (length, size) = (staged.content.length, staged.object.allocatedSize)
        let publication = try Publication(of: record, for: key, in: directory)
        var claim = staged.claim
        var object = Optional(staged.object)
        var terms = RoomTerms()
        defer { room.giveBack(claim) }
        // The length was not known: a pipe, a file that has grown, or one in /proc, whose size is 0.
        if claim.map({ $0.bytes < size }) ?? true {
            room.giveBack(claim.take())
            claim = try claimRoom(
                forLength: length,
                record: publication.bytes.count,
                isWritten: true,
                for: publication,
                now: record.created,
                &terms
            )
        }
        var isFirst = true
        let outcome = try room.makingSpace(forLength: length, now: record.created, terms) {
            (terms) throws(CacheError) in
            defer { isFirst = false }
            if !isFirst {
                // The object may have its name already, if only the entry did not fit.
                var nothing: TemporaryFile?
                let outcome = try publish(publication, &nothing, &claim, &terms)
                if outcome != .objectMissing { return outcome }
            }
            return try publish(publication, &object, &claim, &terms)
        }
        guard outcome.isPublished else {
            throw CacheError(errno: .noSpace, "keep an object while room was made in", path: directory.path)
        }
        counters.add(.put)
        return outcome.generation
    }

    /// Stores `bytes` only if the entry is still the `observed` one (nil: absent).
    package func put(
        _ bytes: Span<UInt8>,
        for key: Digest,
        _ record: Record,
        ifStill observed: StoredEntry?
    ) throws(CacheError) -> PublishOutcome {
        let publication = try Publication(of: record, for: key, ifStill: .some(observed), in: directory)
        let outcome = try publish(publication, bytes, RoomTerms())
        if outcome.isPublished { counters.add(.put) }
        return outcome
    }

    /// Replaces the record of a live entry with another record of the same content, if the entry is still the `observed` one.
    ///
    /// It counts as an access at `now`.
    ///
    /// - Parameter accessed: the access time that the entry keeps, if it does not count as an access.
    package func rewrite(
        _ record: Record,
        for key: Digest,
        ifStill observed: StoredEntry?,
        now: Timestamp,
        keeping accessed: Timestamp? = nil,
        _ terms: RoomTerms = RoomTerms()
    ) throws(CacheError) -> PublishOutcome {
        let publication = try Publication(
            of: record,
            for: key,
            accessed: now,
            ifStill: .some(observed),
            in: directory
        )
        // Before the lock: another process may have left any number of bytes to write to the medium, and no process should
        // wait for that with the lock held. Under the lock little is left to write.
        try objects.synchronizeIfDurable(record.content.digest)
        var terms = terms
        var claim = try claimGrowth(of: observed, to: publication, &terms)
        defer { room.giveBack(claim) }
        let outcome = try room.makingSpace(forLength: 0, now: now, terms) { (terms) throws(CacheError) in
            var nothing: TemporaryFile?
            return try publish(publication, &nothing, &claim, &terms)
        }
        // A record that is changed in place does not change the access time of the file.
        if outcome.isPublished {
            _ = try entries.setAccessTime(of: key, to: accessed ?? Self.accessTime(for: record, now: now))
        }
        return outcome
    }

    /// Returns the access time of an entry that gets a new record: the present, unless it expires at once and an access
    /// would prolong it.
    private static func accessTime(for record: Record, now: Timestamp) -> Timestamp {
        guard record.idleLifetime != nil, let expires = record.expires, expires <= now else { return now }
        return record.created
    }

    /// Claims the additional room of an entry with a longer record.
    private func claimGrowth(
        of observed: StoredEntry?,
        to publication: Publication,
        _ terms: inout RoomTerms
    ) throws(CacheError) -> RoomClaim? {
        let record = publication.bytes.count
        let before = observed.map { entries.expectedAllocation(ofRecord: $0.bytes.count) } ?? 0
        guard entries.expectedAllocation(ofRecord: record) > before else { return nil }
        return try claimRoom(forLength: 0, record: record, entries: 0, now: publication.moment, &terms)
    }
}
