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
    /// not found, created, written, linked and closed. One more for a new entry. In a series of puts that are all new
    /// (``NewKeyPredictor``), one fewer for new content, and two fewer if the entry is new, too.
    ///
    /// - Parameters:
    ///   - bytes: the value.
    ///   - key: the key's digest.
    ///   - record: the record of the value.
    ///   - wait: how to wait if there is no space.
    ///   - willWrite: called with the stripe held, just before the entry is written: no other process can have seen the
    ///     value before. Called again if the write is repeated because the disk was full.
    /// - Returns: the generation under which the value may be held in memory; nil if it may not.
    @discardableResult
    package func put(
        _ bytes: Span<UInt8>,
        for key: Digest,
        _ record: Record,
        _ wait: SpaceWait = SpaceWait(),
        willWrite: (() -> Void)? = nil
    ) throws(CacheError) -> Generation? {
        if willWrite == nil, try pack(bytes, for: key, record) {
            counters.add(.put)
            return nil
        }
        var write = try EntryWrite(record, for: key, wait: wait, willWrite: willWrite, in: self)
        let result = try write.run(bytes)
        counters.add(.put)
        return result.generation
    }

    /// Copies a file's bytes, from its offset to its end, into an object that has no name yet.
    ///
    /// If the length of the file is known, it reserves space first. If the disk is full, it makes space and continues to
    /// copy (``makeSpace(_:now:_:)``).
    ///
    /// - Parameter draft: a record like the value's; the call fails now if it is too long.
    package func stage(
        copying source: borrowing FileDescriptor,
        for key: Digest,
        _ draft: Record
    ) throws(CacheError) -> StagedCopy {
        let bytes = draft.encoded(for: key)
        try EntryWrite.check(bytes, in: self)
        let now = draft.created
        var wait = SpaceWait()
        var reservation = Reservation()
        let length = try describing("read the length of a value for", directory.path) { () throws(Errno) in
            try source.lengthLeft()
        }
        if let length {
            reservation = try reserve(
                length: Int(clamping: length),
                record: bytes.count,
                replacing: Replacement(key: key, content: draft.content, mayGoFirst: true),
                now: now,
                &wait
            )
        }
        var janitor = janitorWait(wait)
        var copied: Int64 = 0
        var staged = try objects.stage(copying: source, atMost: longestValue) { left in
            // Give up the reservation: no other process can free this space. It is reserved again when the value is
            // complete.
            reservation = Reservation()
            // Make twice as much space each time, up to 1 TiB, so that a long pipe needs few collections.
            copied = min(max(copied * 2, Int64(left)), 1 << 40)
            return makeSpace(copied, now: now, &janitor)
        }
        staged.reservation = reservation
        return staged
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
        var write = try EntryWrite(
            record,
            for: key,
            object: staged.object,
            reservation: staged.reservation,
            in: self
        )
        let result = try write.run()
        guard result.isWritten else {
            throw CacheError(errno: .noSpace, "keep an object while space was made in", path: directory.path)
        }
        counters.add(.put)
        return result.generation
    }

    /// Stores `bytes` only if the entry is still the `observed` one (nil: absent).
    package func put(
        _ bytes: Span<UInt8>,
        for key: Digest,
        _ record: Record,
        ifStill observed: StoredEntry?
    ) throws(CacheError) -> WriteResult {
        var write = try EntryWrite(record, for: key, if: .unchanged(observed), in: self)
        let result = try write.run(bytes)
        if result.isWritten { counters.add(.put) }
        return result
    }

    /// Replaces the record of a live entry with another record of the same content, if the entry is still the `observed` one.
    ///
    /// This counts as an access at `now`, unless `accessed` is passed.
    ///
    /// - Parameter accessed: the access time that the entry keeps, if the write does not count as an access.
    package func rewrite(
        _ record: Record,
        for key: Digest,
        ifStill observed: StoredEntry?,
        now: Timestamp,
        keeping accessed: Timestamp? = nil,
        _ wait: SpaceWait = SpaceWait()
    ) throws(CacheError) -> WriteResult {
        var write = try EntryWrite(
            record,
            for: key,
            if: .unchanged(observed),
            accessed: now,
            wait: wait,
            in: self
        )
        // Synchronize before locking: another process may have left any number of bytes to write to the medium, and no
        // process should wait for that with the lock held. Under the lock little is left to write.
        try objects.synchronizeIfDurable(record.content.digest)
        let result = try write.run()
        // A record that is changed in place does not change the access time of the file.
        if result.isWritten {
            _ = try entries.setAccessTime(of: key, to: accessed ?? Self.accessTime(for: record, now: now))
        }
        return result
    }

    /// Returns the access time of an entry that gets a new record.
    ///
    /// It is the present, unless the entry expires at once and an access would prolong its life.
    private static func accessTime(for record: Record, now: Timestamp) -> Timestamp {
        guard record.idleLifetime != nil, let expires = record.expires, expires <= now else { return now }
        return record.created
    }
}
