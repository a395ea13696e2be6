// SPDX-License-Identifier: Apache-2.0

import Platform

/// The store's use of the room for puts, the log and the janitor lock.
extension Store {
    // MARK: Room

    /// Claims room for a value of `length` bytes and its entry, by the present limits, and waits if there is none.
    ///
    /// The caller must give back the claim once the value is stored and counted, or the put has failed. The claim is nil if
    /// none was necessary.
    ///
    /// - Parameters:
    ///   - length: the length of the value.
    ///   - record: the length of its record.
    ///   - entries: how many entries are added, unless one is replaced.
    ///   - isWritten: whether its bytes are on disk already.
    ///   - publication: the publication, if it may replace another value. That is checked only if the limits leave no room
    ///     for a new one.
    ///   - now: the caller's time.
    ///   - terms: how to wait if there is no room.
    /// - Throws: ``CacheError/Code/valueTooLarge`` for a value that can never fit, ``CacheError/Code/noRoom`` if nothing
    ///   could be evicted in time.
    func claimRoom(
        forLength length: Int,
        record: Int,
        entries: Int = 1,
        isWritten: Bool = false,
        for publication: Publication? = nil,
        now: Timestamp,
        _ terms: inout RoomTerms
    ) throws(CacheError) -> RoomClaim? {
        if parts.configuration.isDue() { followConfiguration() }
        let whole = try room.need(forLength: length, record: record, entries: entries, isWritten: isWritten)
        guard var need = whole else { return nil }
        try room.countIfUnknown(need, now: now, &terms)
        var claim: RoomClaim?
        if try room.attempt(need, &claim) == nil { return claim }
        if let publication, let old = try self.entries.read(publication.key) {
            let difference = room.need(need, of: publication.content, replacing: old)
            guard let excess = try room.attempt(difference, &claim) else { return claim }
            if publication.isUnconditional, room.shouldGoFirst(difference, excess) {
                try makeWay(for: publication.key, removing: old)
            } else {
                need = difference
            }
        }
        return try room.waitForRoom(need, now: now, &terms)
    }

    /// Removes the entry that a put is about to replace, if it is unchanged, so that a sweep can delete its value.
    private func makeWay(for key: Digest, removing observed: StoredEntry) throws(CacheError) {
        try entries.stripes.withLock(.exclusive, stripe: key.stripe) { () throws(CacheError) in
            guard StoredEntry.areSame(try entries.read(key), observed) else { return }
            _ = try entries.writing(key, isRemoval: true) { () throws(CacheError) in try entries.delete(key) }
            if let record = observed.record { control.noteRemoval(of: record) }
            counters.add(.sweptSize)
            log(.collected(.size), of: key, name: observed.record?.key)
        }
    }

    // MARK: Log

    /// Logs that one key was removed, if there is a log.
    func log(_ cause: LoggedRemoval.Cause, of key: Digest, name: @autoclosure () -> String?) {
        parts.log?.append([LoggedKey(digest: key, name: name())], cause: cause)
    }

    // MARK: Sweeps

    /// Returns the identifier of the process that runs the collection of `record`.
    ///
    /// Returns nil if this process can't see it, as it may be in another container.
    package func visibleSweeper(_ record: SweepRecord) -> Int32? {
        parts.janitor.isHeld(by: record.process) ? record.process : nil
    }
}
