// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// Functions of the store that share values with remote stores.
extension Store {
    // MARK: Noting

    /// Records a change of `key` for the remote stores; the caller is about to change the entry and holds its stripe.
    ///
    /// The record is written before the change, because the process may be killed after the change. The sender reads the
    /// entry only after the stripe was free. Two loads if there are no remote stores; otherwise two system calls.
    @inline(__always)
    func note(_ key: Digest, _ work: @autoclosure () -> OutboxRecord.Work) {
        guard let words = control.writableWords, words.load(.remoteNotes) != 0 else { return }
        noteForOthers(key, work())
    }

    @inline(never)
    private func noteForOthers(_ key: Digest, _ work: OutboxRecord.Work) {
        let isAvoided = control.remoteNotes == .avoidance
        let record = OutboxRecord(
            number: OutboxRecord.freshNumber(),
            entry: key,
            work: isAvoided ? .avoid : work
        )
        do throws(Errno) {
            try outbox.append(record)
        } catch {
            // The change will not be sent, and the remote stores may have an older value of the key.
            control.raiseRemoteBarrier(to: .now)
            counters.add(.remoteDropped)
        }
    }

    /// Stops accepting values from remote stores that were created before `now`, or that were found so far with a creation
    /// time ahead of this machine's clock.
    ///
    /// The time is stored in the control file. If the directory uses remote stores, it is also appended to the outbox,
    /// because a control file can be lost.
    package func raiseRemoteBarrier(now: Timestamp = .now) {
        control.raiseRemoteBarrier(to: now)
        if control.remoteNotes != .nothing { appendBarrier(max(now, control.remoteBarrier)) }
    }

    /// Appends the control file's barrier to the outbox if it is later than `known`, the latest barrier there.
    ///
    /// That happens if the outbox was full when the barrier was raised.
    package func keepRemoteBarrier(laterThan known: Timestamp) {
        let barrier = control.remoteBarrier
        if barrier.milliseconds > known.milliseconds { appendBarrier(barrier) }
    }

    private func appendBarrier(_ moment: Timestamp) {
        // If the outbox is full, the sender appends it later, and a new control file begins with its own barrier.
        bestEffort { () throws(Errno) in try outbox.append(OutboxRecord(.barrier(moment.milliseconds))) }
    }

    /// Sets which keys writers record in the outbox.
    ///
    /// If writers recorded nothing before, and the directory has used remote stores, older remote values are no longer
    /// accepted.
    ///
    /// The sender calls this in each round, because the directory or the control file may have been replaced. It costs one
    /// load if nothing has changed.
    package func note(_ notes: RemoteNotes) {
        guard control.writableWords != nil, control.remoteNotes != notes else { return }
        guard control.remoteNotes == .nothing else {
            _ = control.setRemoteNotes(notes)
            return
        }
        // Several processes may open a new directory at once. Only the first one must find that there is no outbox.
        var lock: LockFile?
        do throws(CacheError) {
            lock = try directory.lock(StoreLayout.formatLock, patience: Self.notesPatience)
        } catch {
            counters.add(.cacheFailure)
        }
        if control.remoteNotes == .nothing { beginNotes(notes) } else { _ = control.setRemoteNotes(notes) }
        lock?.release()
    }

    /// How long to wait for another process that changes what writers record.
    private static let notesPatience: Duration = .seconds(1)

    private func beginNotes(_ notes: RemoteNotes) {
        do throws(Errno) {
            // From now on, the outbox file shows that the directory uses remote stores.
            if try outbox.mark() == nil {
                try outbox.append(OutboxRecord(.barrier(0)))
            } else {
                control.raiseRemoteBarrier(to: .now)
            }
        } catch {
            control.raiseRemoteBarrier(to: .now)
        }
        guard control.setRemoteNotes(notes), control.remoteBarrier > Timestamp(milliseconds: 0) else {
            return
        }
        // Writers may have changed entries before they saw the new value of the word.
        raiseRemoteBarrier()
    }

    /// Appends a record of the sender itself.
    package func noteForRemote(_ key: Digest, _ work: OutboxRecord.Work) {
        noteForOthers(key, work)
    }

    // MARK: Sending

    /// Waits for all writers that have started, then returns the value that a get would find, with its record; nil if there
    /// is none.
    package func settled(_ key: Digest, now: Timestamp) throws(CacheError) -> (record: Record, value: Data)? {
        try entries.stripes.lock(.exclusive, stripe: key.stripe).release()
        let (stored, value) = try observe(key, now: now)
        guard let record = stored?.record, let value else { return nil }
        return (record, value)
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

    /// Stores a value of a remote store, unless the key was written or removed since the request.
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
        record.key = key
        return record
    }
}
