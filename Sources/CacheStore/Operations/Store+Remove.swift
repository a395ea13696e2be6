// SPDX-License-Identifier: Apache-2.0

package import Platform

extension Store {
    /// Removes the entry of `key`; returns false if there was none, or if it had expired at `now`.
    ///
    /// The object stays until a sweep finds that no entry names it. Six system calls; three if there is no entry, seven if
    /// the entry has expired; one more if entries take space on disk besides their inodes.
    ///
    /// - Parameter name: the key, for the event log.
    package func remove(_ key: Digest, now: Timestamp, name: String? = nil) throws(CacheError) -> Bool {
        while true {
            switch try removeIfFresh(key, now) {
            case .absent: return false
            case .removed(let record):
                noteRemoval(of: record)
                log(.removed, of: key, name: name)
                return true
            case .removedFromPack(let record):
                counters.add(.removal)
                log(.removed, of: key, name: name ?? record.key)
                return true
            case .own(let stored):
                if try remove(key, ifStill: stored) { return true }
            case .over(let stored):
                // Another writer may have replaced the entry with a fresh one, which must be removed, too.
                if try remove(key, ifStill: stored) { return false }
            case .changed: continue
            }
        }
    }

    /// The result of ``removeIfFresh(_:_:)``.
    private enum RemovalFinding {
        case absent, changed
        case removed(Record)
        case removedFromPack(Record)
        /// An entry to delete that counts as absent: it has expired, is damaged, or records the absence of a value.
        case over(StoredEntry)
        /// An entry to delete that was never sent to remote stores.
        case own(StoredEntry)
    }

    /// Deletes the entry of `key` if it is fresh.
    ///
    /// Raises the generation even if there is no entry: processes may hold the value of an evicted entry in memory. Other
    /// writers may be active. If one of them replaces the entry between the read and the deletion, its entry is deleted, as
    /// if it had been written before.
    private func removeIfFresh(_ key: Digest, _ now: Timestamp) throws(CacheError) -> RemovalFinding {
        let lock = try entries.stripes.lock(modeOfChange, stripe: key.stripe)
        let change = try control.beginChange(of: key, publishes: false)
        let finding = try removeIfFresh(key, now, under: lock)
        change.end()
        return finding
    }

    private func removeIfFresh(
        _ key: Digest,
        _ now: Timestamp,
        under lock: borrowing StripeLock
    ) throws(CacheError) -> RemovalFinding {
        if let word = try packs?.word(of: key) { return try remove(word, of: key, now, under: lock) }
        let found = try entries.read(key)
        let isOwn = found?.record?.staysHere ?? false
        if !isOwn { try recordRemoval(of: key, under: lock) }
        guard let stored = found else { return .absent }
        guard let record = stored.record else { return .over(stored) }
        guard let freshness = try freshness(of: stored, key, now) else { return .changed }
        guard freshness == .fresh, !record.isNothing else { return .over(stored) }
        // Don't delete it here: an entry that has replaced it meanwhile may have been sent, and its removal would have to
        // be recorded.
        if isOwn { return .own(stored) }
        return try entries.delete(key, under: lock) ? .removed(record) : .absent
    }

    /// Removes the value that `word` names in a pack, and an entry that a killed process may have left below it.
    private func remove(
        _ word: PackWord,
        of key: Digest,
        _ now: Timestamp,
        under lock: borrowing StripeLock
    ) throws(CacheError) -> RemovalFinding {
        let packed = try packedValue(key, now: now)
        try recordRemoval(of: key, under: lock)
        _ = try entries.delete(key, under: lock)
        let isRemoved = packs?.remove(word, of: key, under: lock) ?? false
        if let record = packed?.record, packed?.freshness == .fresh {
            // If a put has replaced the value meanwhile, it counts as the later call.
            return .removedFromPack(record)
        }
        return isRemoved ? .absent : .changed
    }

    /// Removes the entry if it is still the `observed` one (nil: absent); returns false if it is not.
    package func remove(_ key: Digest, ifStill observed: StoredEntry?) throws(CacheError) -> Bool {
        let (isAsObserved, removed) = try remove(key) { StoredEntry.areSame($0, observed) }
        if removed != nil { log(.removed, of: key, name: observed?.record?.key) }
        return isAsObserved
    }

    /// Removes the entry if `isMeant` returns true for it (nil: absent), while no writer can change it.
    ///
    /// The removal is not recorded in the event log.
    ///
    /// - Returns: the result of `isMeant`, and the removed entry.
    package func remove(
        _ key: Digest,
        where isMeant: (StoredEntry?) -> Bool
    ) throws(CacheError) -> (isMeant: Bool, removed: StoredEntry?) {
        var lock = try entries.stripes.lock(.exclusive, stripe: key.stripe)
        while try isPacked(key) {
            lock.release()
            try unpack(key)
            lock = try entries.stripes.lock(.exclusive, stripe: key.stripe)
        }
        let stored = try entries.read(key)
        guard isMeant(stored) else { return (false, nil) }
        // Raises the generation even if there is no entry, like any other removal.
        let change = try control.beginChange(of: key, publishes: false)
        try recordRemoval(of: key, isSent: stored?.record?.staysHere != true, under: lock)
        let isRemoved = try entries.delete(key, under: lock)
        change.end()
        if isRemoved { noteRemoval(of: stored?.record) }
        return (true, isRemoved ? stored : nil)
    }

    /// Invalidates the value of `key` in the memory of all processes, which may still hold it after a sweep has evicted its
    /// entry.
    package func invalidate(_ key: Digest) throws(CacheError) {
        let lock = try entries.stripes.lock(.shared, stripe: key.stripe)
        try control.beginChange(of: key, publishes: false).end()
        lock.release()
    }

    /// Removes the entry of `key`, fresh or not, to replace it with a value in the memory of this process alone.
    ///
    /// Five system calls.
    ///
    /// - Parameter name: the key, for the event log.
    /// - Returns: the generation under which that value may be held; nil if it may not, because another writer was active,
    ///   or there is no control file.
    package func vacate(_ key: Digest, name: String? = nil) throws(CacheError) -> Generation? {
        let lock = try entries.stripes.lock(modeOfChange, stripe: key.stripe)
        let change = try control.beginChange(of: key, publishes: false)
        try recordRemoval(of: key, under: lock)
        let packed = try packs?.word(of: key)
        let isRemoved = try entries.delete(key, under: lock)
        // A put that has replaced the value in a pack meanwhile counts as the later call.
        let isReplaced = packed.map { packs?.remove($0, of: key, under: lock) == false } ?? false
        let ended = change.end()
        let generation = isReplaced ? nil : ended
        lock.release()
        if isRemoved || packed != nil {
            noteRemoval(of: nil)
            log(.removed, of: key, name: name)
        }
        return generation
    }

    /// Removes the entry of `key`, if there is one, for a computed value that this process keeps in its memory alone.
    ///
    /// If there is no entry, this changes nothing for other processes. So several processes can each compute the value and
    /// keep it in memory. No system call for most keys without an entry, one for others, and four if there is an entry.
    package func vacateIfPresent(_ key: Digest, name: String? = nil) throws(CacheError) -> Generation? {
        // Load the generation before the check: a writer that stores a value afterwards changes the generation first.
        guard let generation = heldGeneration(of: key), try isAbsent(key) else {
            return try vacate(key, name: name)
        }
        return generation
    }

    private func isAbsent(_ key: Digest) throws(CacheError) -> Bool {
        if try isPacked(key) { return false }
        if control.rulesOut(key) { return true }
        return try directory.status(of: key, .entries) == nil
    }

    /// Counts a removal, and notes the garbage that it creates.
    ///
    /// - Parameter record: the removed record; nil if it is not known.
    private func noteRemoval(of record: Record?) {
        counters.add(.removal)
        if let record { control.noteRemoval(of: record) } else { control.noteReplacement(bytes: 0) }
    }

    /// Records an access if a get would hit; returns false if it would miss.
    ///
    /// Seven system calls.
    ///
    /// - Parameter clock: called once the stripe is held, so that an entry that expires during the wait is not prolonged.
    package func touch(_ key: Digest, by clock: () -> Timestamp) throws(CacheError) -> Bool {
        var lock = try entries.stripes.lock(.shared, stripe: key.stripe)
        while try isPacked(key) {
            lock.release()
            try unpack(key)
            lock = try entries.stripes.lock(.shared, stripe: key.stripe)
        }
        let now = clock()
        guard try liveEntry(key, now: now, allowingStale: false) != nil else { return false }
        let isTouched = try entries.setAccessTime(of: key, to: now)
        lock.release()
        return isTouched
    }

    // MARK: Repairs

    /// Removes an entry whose object a reader found damaged, and the object if its bytes don't have its digest.
    ///
    /// A reader never waits. If a lock is not free, or anything fails, the next reader or sweep removes them: the value is
    /// a miss either way.
    func discard(_ key: Digest, _ stored: StoredEntry, _ content: Content) {
        var isRecordWrong = false
        repair { () throws(CacheError) in
            let verdict = try objects.deleteIfCorrupt(
                content.digest,
                expecting: content.length,
                patience: .zero
            )
            isRecordWrong = verdict == .sound
        }
        forget(key, stored, unlessPresent: isRecordWrong ? nil : content)
    }

    /// Removes an entry whose object a reader found missing or damaged, as ``discard(_:_:_:)`` does.
    ///
    /// If the entry stayed, calls that don't read the value would report it as present.
    func forget(_ key: Digest, _ stored: StoredEntry, unlessPresent content: Content?) {
        guard directory.isWritable else { return }
        repair { () throws(CacheError) in
            _ = try deleteEntry(key, ifStill: stored.bytes, unlessPresent: content, patience: .zero)
        }
    }

    func repair(_ body: () throws(CacheError) -> Void) {
        do throws(CacheError) {
            try body()
        } catch {
            counters.add(.repairFailure)
        }
    }
}
