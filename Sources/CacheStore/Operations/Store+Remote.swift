// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// Functions of the store that share values with remote stores.
extension Store {
    // MARK: Noting

    /// Records a change of `key` for the remote stores; the caller is about to change the entry and holds its stripe.
    ///
    /// The record is written before the change, because the process may be killed after the change. The sender reads the
    /// entry only after the stripe was free. Two loads if changes are not recorded; otherwise two system calls.
    ///
    /// - Parameter version: the version of the change; nil if remote stores came into use after the stripe was locked.
    @inline(__always)
    func note(
        _ key: Digest,
        _ work: @autoclosure () -> OutboxRecord.Work,
        _ version: ChangeVersion?
    ) {
        guard let words = control.writableWords, words.load(.notesChanges) != 0 else { return }
        let version = version ?? ChangeVersion(at: .now, machine: 0)
        noteForOthers(OutboxRecord(number: version.rawValue, entry: key, work: work()))
    }

    @inline(never)
    private func noteForOthers(_ record: OutboxRecord) {
        do throws(Errno) {
            try outbox.append(record)
        } catch {
            // The change will not be sent. This machine does not take the older value that the remote stores may have.
            counters.add(.remoteDropped)
        }
    }

    /// Sets whether writers record their changes for remote stores; from now on changes have versions.
    ///
    /// The sender calls this in each round, because the directory or the control file may have been replaced. It costs two
    /// loads if nothing has changed.
    package func noteChanges(_ isOn: Bool) {
        useVersions()
        // Without versions, no server could tell an older change from a later one.
        control.setNotesChanges(isOn && versions.areInUse)
    }

    /// Gives changes versions from now on, because this machine takes values from remote stores.
    package func useVersions() {
        if control.writableWords != nil, !versions.areInUse { beginVersions() }
    }

    /// How long to wait for another process that begins to draw versions.
    private static let patience: Duration = .seconds(1)

    private func beginVersions() {
        do throws(CacheError) {
            // Several processes may open a new directory at once. Only the first one must find that there is no outbox.
            let lock = try directory.lock(StoreLayout.formatLock, patience: Self.patience)
            guard lock != nil else { return }
            func describingOutbox<Value>(_ body: () throws(Errno) -> Value) throws(CacheError) -> Value {
                try describing("use the outbox of", directory.path, body)
            }
            let mark = try describingOutbox { () throws(Errno) in try outbox.mark() }
            try versions.begin(isFirstUse: mark == nil)
            // From now on, this file, too, shows that the directory uses remote stores.
            try describingOutbox { () throws(Errno) in try outbox.create() }
            lock?.release()
        } catch {
            // The sender tries again in its next round.
            counters.add(.controlFailure)
        }
    }

    /// Records the entry of `key` as if it had just been stored; returns false if there is none.
    ///
    /// Three system calls.
    package func noteEntry(_ key: Digest) throws(CacheError) -> Bool {
        guard let record = try entries.read(key)?.record else { return false }
        let work = OutboxRecord.Work.put(content: record.content.digest, length: record.content.length)
        noteForOthers(OutboxRecord(number: record.version.rawValue, entry: key, work: work))
        return true
    }

    // MARK: Sending

    /// Waits for all writers that have started, then returns the key's record, with the value that a get would find; nil if
    /// there is no entry.
    package func settled(_ key: Digest, now: Timestamp) throws(CacheError) -> (record: Record, value: Data?)?
    {
        try entries.stripes.lock(.exclusive, stripe: key.stripe).release()
        let (stored, value) = try observe(key, now: now)
        return stored?.record.map { ($0, value) }
    }

    /// Returns the version of the last removal of `key`, if this machine remembers it; otherwise none.
    package func removedVersion(of key: Digest) throws(CacheError) -> ChangeVersion {
        guard versions.areInUse else { return .none }
        let lock = try entries.stripes.lock(.exclusive, stripe: key.stripe)
        let latest = try versions.latest(of: key, under: lock)
        return latest.isExact ? latest.version : .none
    }

    // MARK: Taking

    /// The state of a key on this machine before a remote store is asked for the key's value.
    package struct Absence: Sendable {
        package let generation: Generation
        package let stored: StoredEntry?
    }

    /// Returns the state of a key, to be compared after a remote store has answered.
    ///
    /// Returns nil if no remote store may be asked: a value exists by now, its absence is recorded, or writers can't be
    /// detected.
    ///
    /// One system call.
    package func absence(of key: Digest, now: Timestamp) throws(CacheError) -> Absence? {
        try unpack(key)
        // Load the generation before reading the entry: a later writer changes the generation first.
        guard directory.isWritable, let generation = control.generation(of: key), !generation.hasWriters
        else { return nil }
        if try isPacked(key) { return nil }
        let stored = try entries.read(key)
        if let stored, stored.record != nil, try freshness(of: stored, key, now) == .fresh { return nil }
        return Absence(generation: generation, stored: stored)
    }

    /// Returns whether no process has written the key since `absence` was returned.
    package func isCurrent(_ absence: Absence) -> Bool { control.isCurrent(absence.generation) == true }

    /// Stores a value of a remote store, unless the key was written or removed since the request, or this machine
    /// has seen a newer value of the key.
    package func adopt(
        _ bytes: Span<UInt8>,
        for key: Digest,
        _ record: Record,
        since absence: Absence,
        now: Timestamp,
        _ wait: SpaceWait
    ) throws(CacheError) -> WriteResult {
        var write = try EntryWrite(
            record,
            for: key,
            if: .unwritten(since: absence.generation, absence.stored),
            accessed: now,
            wait: wait,
            in: self
        )
        return try write.run(bytes)
    }

    /// Returns whether a value of a remote store that could not be stored may be returned to a caller nevertheless.
    ///
    /// If so, its version is remembered, and an older entry is deleted: nothing older is returned later.
    package func mayReturnUnstored(
        _ record: Record,
        for key: Digest,
        since absence: Absence
    ) throws(CacheError) -> Bool {
        guard versions.areInUse else { return isCurrent(absence) }
        let lock = try entries.stripes.lock(.exclusive, stripe: key.stripe)
        let stored = try entries.read(key)
        guard StoredEntry.areSame(stored, absence.stored), isCurrent(absence),
            try takes(record.version, of: key, replacing: stored, under: lock)
        else { return false }
        if stored == nil, try versions.latest(of: key, under: lock) == (record.version, true) { return true }
        // Also if there is no entry: processes may have an older value in memory.
        let change = try control.beginChange(of: key, publishes: false)
        versions.remember(record.version, of: key, isRemoval: false, under: lock)
        if let stored, try entries.delete(key, under: lock), let record = stored.record {
            control.noteRemoval(of: record)
        }
        change.end()
        return true
    }
}

extension Record {
    /// The record for other machines: without the key, which a requesting machine knows, and without the state of this
    /// directory.
    package var forOthers: Record {
        var record = self
        record.key = nil
        var details = record.details
        details.followedRule = nil
        record.details = details
        return record
    }

    /// Returns the record to store for a value that came from another machine, whose clock may be ahead.
    ///
    /// - Parameter key: the key to store with it, if any.
    package func arrived(at now: Timestamp, content: Content, key: String?) -> Record {
        var record = Record(content: content, created: min(created, now))
        record.expires = expires
        record.idleLifetime = idleLifetime
        record.staleFor = staleFor
        record.cost = cost
        var details = details
        details.followedRule = nil
        details.isNothing = false
        // A later removal or replacement must be sent to the remote store, whatever the record says.
        details.staysHere = false
        record.details = details
        record.version = version
        record.key = key
        return record
    }
}
