// SPDX-License-Identifier: Apache-2.0

package import Platform

extension Store {
    /// Removes the entry of `key`; false where there was none, or one that was fresh no more at `now`, which a
    /// sweep could have deleted before.
    ///
    /// The object stays until a sweep finds that no entry names it. Six system calls; three where there is no
    /// entry, seven for one that has expired; one more where entries take space of their own.
    ///
    /// - Parameter name: the key, for the event log.
    package func remove(_ key: Digest, now: Timestamp, name: String? = nil) throws(CacheError) -> Bool {
        while true {
            // Raised also where there is no entry: a sweep may have evicted one whose value others still hold.
            let (finding, _) = try entries.stripes.withLock(.shared, stripe: key.stripe) {
                () throws(CacheError) in
                try entries.writing(key, isRemoval: true) { () throws(CacheError) in
                    try removeIfFresh(key, now)
                }
            }
            switch finding {
            case .absent: return false
            case .removed:
                noteRemoval()
                log(.removed, of: key, name: name)
                return true
            case .own(let stored):
                if try remove(key, ifStill: stored) { return true }
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
        /// It is to be deleted, if it is still there: no other machine has it.
        case own(StoredEntry)
    }

    /// Deletes the entry of `key` if it is fresh.
    ///
    /// Beside other writers: one that has replaced it between the look and the deletion is as good as not come yet.
    private func removeIfFresh(_ key: Digest, _ now: Timestamp) throws(CacheError) -> RemovalFinding {
        let found = try entries.read(key)
        let isOwn = found?.record?.staysHere ?? false
        // Also where there is no entry: others may have one.
        if !isOwn { note(key, .remove) }
        guard let stored = found else { return .absent }
        guard stored.record != nil else { return .over(stored) }
        guard let freshness = try freshness(of: stored, key, now) else { return .changed }
        guard freshness == .fresh, stored.record?.isNothing == false else { return .over(stored) }
        // What may have come in its place since the look is others' as well, and to be noted.
        if isOwn { return .own(stored) }
        return try entries.delete(key) ? .removed : .absent
    }

    /// Removes the entry if it is still as `observed` (nil: absent); false where it is not.
    package func remove(_ key: Digest, ifStill observed: StoredEntry?) throws(CacheError) -> Bool {
        let (isAsObserved, removed) = try remove(key) { StoredEntry.areSame($0, observed) }
        if removed != nil { log(.removed, of: key, name: observed?.record?.key) }
        return isAsObserved
    }

    /// Removes the entry if `isMeant` says so of what is there when nobody can change it, nil for nothing; it is not told
    /// to the event log.
    ///
    /// The entry that was removed, if any.
    package func remove(
        _ key: Digest,
        where isMeant: (StoredEntry?) -> Bool
    ) throws(CacheError) -> (isMeant: Bool, removed: StoredEntry?) {
        try entries.stripes.withLock(.exclusive, stripe: key.stripe) { () throws(CacheError) in
            let stored = try entries.read(key)
            guard isMeant(stored) else { return (false, nil) }
            if stored?.record?.staysHere != true { note(key, .remove) }
            // Raised also where there is no entry, as by any other remove.
            let (isRemoved, _) = try entries.writing(key, isRemoval: true) { () throws(CacheError) in
                try entries.delete(key)
            }
            if isRemoved { noteRemoval() }
            return (true, isRemoved ? stored : nil)
        }
    }

    /// Has everybody who holds a value of `key` in memory look at its entry again, which is gone: what a sweep
    /// evicts others may still hold.
    package func invalidate(_ key: Digest) throws(CacheError) {
        try entries.stripes.withLock(.shared, stripe: key.stripe) { () throws(CacheError) in
            _ = try entries.writing(key, isRemoval: true) {}
        }
    }

    /// Removes what is stored for `key`, fresh or not, for a value that takes its place in the memory of this process
    /// alone.
    ///
    /// Five system calls.
    ///
    /// - Parameter name: the key, for the event log.
    /// - Returns: the generation by which that value may be held; nil where it may not, because somebody else was
    ///   writing meanwhile, or there is no control file.
    package func vacate(_ key: Digest, name: String? = nil) throws(CacheError) -> Generation? {
        let (isRemoved, generation) = try entries.stripes.withLock(.shared, stripe: key.stripe) {
            () throws(CacheError) in
            try entries.writing(key, isRemoval: true) { () throws(CacheError) in
                try deleteNoting(key)
            }
        }
        if isRemoved {
            noteRemoval()
            log(.removed, of: key, name: name)
        }
        return generation
    }

    /// The same for a value that was computed, which takes nobody else's place: where nothing is stored, nothing changes
    /// for others.
    ///
    /// So values that several processes compute, and each keeps in its own memory alone, stay valid beside each other. No
    /// system call for most keys that have no entry, one for others, and four where there is one.
    package func vacateIfPresent(_ key: Digest, name: String? = nil) throws(CacheError) -> Generation? {
        // Before the look: whoever stores a value afterwards changes the word first.
        guard let generation = heldGeneration(of: key), try isAbsent(key) else {
            return try vacate(key, name: name)
        }
        return generation
    }

    private func isAbsent(_ key: Digest) throws(CacheError) -> Bool {
        if control.rulesOut(key) { return true }
        return try directory.status(of: key, .entries) == nil
    }

    private func deleteNoting(_ key: Digest) throws(CacheError) -> Bool {
        note(key, .remove)
        return try entries.delete(key)
    }

    private func noteRemoval() {
        counters.add(.removal)
        control.noteReplacement()
    }

    /// Counts as an access, if a get would hit.
    ///
    /// False if a get would miss. Seven system calls.
    ///
    /// - Parameter clock: asked once the stripe is held: what expires while this waits for it is not prolonged.
    package func touch(_ key: Digest, by clock: () -> Timestamp) throws(CacheError) -> Bool {
        try entries.stripes.withLock(.shared, stripe: key.stripe) { () throws(CacheError) in
            let now = clock()
            guard try liveEntry(key, now: now, allowingStale: false) != nil else { return false }
            return try entries.setAccessTime(of: key, to: now)
        }
    }

    // MARK: Repairs

    /// Removes what a reader found damaged: the object if its bytes are not those of its name, and the
    /// entry, which promised something else.
    ///
    /// A reader never waits, so a lock that is not free leaves it to the next reader or sweep, as does
    /// any failure: the value is a miss either way.
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

    /// Removes an entry whose object a reader found gone or damaged, as ``discard(_:_:_:)`` does.
    ///
    /// Left there, it would be a value to whoever does not read it.
    func forget(_ key: Digest, _ stored: StoredEntry, unlessPresent content: Content?) {
        guard directory.isWritable else { return }
        repair { () throws(CacheError) in
            _ = try parts.deleteEntry(key, ifStill: stored.bytes, unlessPresent: content, patience: .zero)
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
