// SPDX-License-Identifier: Apache-2.0

package import Platform

extension Store {
    /// Stores `bytes` under `key`, replacing what was there.
    ///
    /// Once this has returned every read that starts afterwards, in any process, gets the value, until
    /// it is replaced, removed, expires or is evicted.
    ///
    /// System calls for equal content over an existing entry: 11 (`fstatat`, two locks and unlocks; `openat2`,
    /// `utimensat`, `close` for the object; `openat2`, `fsetxattr`, `close` for the entry). 14 for new content: the object is looked
    /// for, not found, created, written, linked and closed. One more for a new entry. One less, and two with a new
    /// entry, in a row of puts that were all new (``Novelty``).
    ///
    /// - Parameters:
    ///   - bytes: the value.
    ///   - key: the key's digest.
    ///   - record: of the value.
    ///   - terms: what to do where there is no room for it.
    ///   - willWrite: called when nothing is left but to write the entry: so far nobody else can have seen the value.
    ///     Its stripe is held then. Called again where the disk was full.
    /// - Returns: the generation by which the value may be held in memory; nil where it may not.
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
    /// `draft` is a record such as the value will have, refused now if it is too long. Room is claimed first where the
    /// length shows; where the disk turns out to be full it is made while what was copied stays (``Room/makeSpace(_:now:_:)``).
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
                // It is no room that others will set free, and is claimed anew once the value is there.
                room.giveBack(claim.take())
                // Twice as much each time, so that a long pipe needs few of them; up to 1 TiB.
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

    /// Stores what was staged; the record must be of its content.
    ///
    /// The generation by which the value may be held in memory; nil where it may not.
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
        // A pipe, or a file that has grown or says that it is empty, as in /proc.
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
                // Where the object has got its name and the entry did not fit.
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

    /// Stores `bytes` only if the entry is still as `observed` (nil: absent).
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

    /// Gives the entry another record of the same content, if it is still as `observed`, a live entry.
    ///
    /// Counts as an access at `now`.
    package func rewrite(
        _ record: Record,
        for key: Digest,
        ifStill observed: StoredEntry?,
        now: Timestamp,
        _ terms: RoomTerms = RoomTerms()
    ) throws(CacheError) -> PublishOutcome {
        let publication = try Publication(
            of: record,
            for: key,
            accessed: now,
            ifStill: .some(observed),
            in: directory
        )
        // Before the lock is taken: another process may have left any amount unwritten, and nobody should
        // have to wait for that. Under it the same finds next to nothing left to do.
        try objects.synchronizeIfDurable(record.content.digest)
        var terms = terms
        var claim = try claimGrowth(of: observed, to: publication, &terms)
        defer { room.giveBack(claim) }
        let outcome = try room.makingSpace(forLength: 0, now: now, terms) { (terms) throws(CacheError) in
            var nothing: TemporaryFile?
            return try publish(publication, &nothing, &claim, &terms)
        }
        // A record that is changed in place leaves the file's time as it was.
        if outcome.isPublished { _ = try entries.setAccessTime(of: key, to: now) }
        return outcome
    }

    /// Claims what an entry takes more with another record, if it does.
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
