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
    /// - Parameters:
    ///   - bytes: the value.
    ///   - key: the key's digest.
    ///   - record: of the value.
    ///   - room: what to do where there is no room for it.
    ///   - willWrite: called when nothing is left but to write the entry: so far nobody else can have seen the value.
    ///     Its stripe is held then. Called again where the disk was full.
    /// - Returns: the generation by which the value may be held in memory; nil where it may not.
    @discardableResult
    package func put(
        _ bytes: Span<UInt8>,
        for key: Digest,
        _ record: Record,
        _ room: RoomTerms = RoomTerms(),
        willWrite: (() -> Void)? = nil
    ) throws(StoreError) -> Generation? {
        var publication = try publication(of: record, for: key, if: .none)
        publication.willWrite = willWrite
        let outcome = try publish(publication, bytes, room)
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
    ) throws(StoreError) -> StagedCopy {
        _ = try encode(draft, for: key)
        let now = draft.created
        let length = try describing("read the length of a value for", directory.path) { () throws(Errno) in
            try source.lengthLeft()
        }
        var room = RoomTerms()
        var claim = try length.flatMap { (length) throws(StoreError) in
            try claimRoom(forLength: Int(clamping: length), now: now, &room)
        }
        var wait = self.room.wait(room)
        var copied: Int64 = 0
        do throws(StoreError) {
            var staged = try objects.stage(copying: source, atMost: self.room.longestValue) { left in
                // It is no room that others will set free, and is claimed anew once the value is there.
                self.room.giveBack(claim.take())
                // Twice as much each time, so that a long pipe needs few of them; up to 1 TiB.
                copied = min(max(copied * 2, Int64(left)), 1 << 40)
                return self.room.makeSpace(copied, now: now, &wait)
            }
            staged.claim = claim
            return staged
        } catch {
            self.room.giveBack(claim)
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
    ) throws(StoreError) -> Generation? {
        let length = staged.content.length
        let publication = try publication(of: record, for: key, if: .none)
        var claim = staged.claim
        var object = Optional(staged.object)
        var room = RoomTerms()
        defer { self.room.giveBack(claim) }
        // A pipe, or a file that has grown or says that it is empty, as in /proc.
        if claim.map({ $0.bytes < directory.allocation(of: length) }) ?? true {
            self.room.giveBack(claim.take())
            claim = try claimRoom(forLength: length, isWritten: true, now: record.created, &room)
        }
        var isFirst = true
        let outcome = try self.room.makingSpace(forLength: length, now: record.created, room) {
            (room) throws(StoreError) in
            defer { isFirst = false }
            if !isFirst {
                // Where the object has got its name and the entry did not fit.
                var nothing: StagedObject?
                let outcome = try publish(publication, &nothing, &claim, &room)
                if outcome != .objectMissing { return outcome }
            }
            return try publish(publication, &object, &claim, &room)
        }
        guard outcome.isPublished else {
            throw StoreError(errno: .noSpace, "keep an object while room was made in", path: directory.path)
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
    ) throws(StoreError) -> PublishOutcome {
        let publication = try publication(of: record, for: key, if: .unchanged(observed?.bytes))
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
        let outcome = try self.room.makingSpace(forLength: 0, now: now) { (room) throws(StoreError) in
            var nothing: StagedObject?
            var nothingClaimed: RoomClaim?
            return try publish(publication, &nothing, &nothingClaimed, &room)
        }
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
        _ bytes: Span<UInt8>,
        _ room: RoomTerms
    ) throws(StoreError) -> PublishOutcome {
        let (length, now) = (publication.content.length, publication.created)
        return try self.room.makingSpace(forLength: length, now: now, room) { (room) throws(StoreError) in
            try publishOnce(publication, bytes, &room)
        }
    }

    private func publishOnce(
        _ publication: Publication,
        _ bytes: Span<UInt8>,
        _ room: inout RoomTerms
    ) throws(StoreError) -> PublishOutcome {
        let content = publication.content
        var staged: StagedObject?
        if try objects.isWorthTrying(content) {
            // Of the entry alone.
            var claim = try claimRoom(forLength: 0, now: publication.created, &room)
            defer { self.room.giveBack(claim) }
            try objects.synchronizeIfDurable(content.digest)
            let outcome = try publish(publication, &staged, &claim, &room)
            if outcome != .objectMissing { return outcome }
        }
        var claim = try claimRoom(forLength: content.length, now: publication.created, &room)
        defer { self.room.giveBack(claim) }
        atStep?(.claimed)
        staged = try objects.stage(bytes, as: content.digest)
        atStep?(.written)
        return try publish(publication, &staged, &claim, &room)
    }

    /// Publishes a record, and its object if that is staged; else it must exist already.
    ///
    /// The bytes have been written before the stripe is taken, so it is held for microseconds however large
    /// the value is; in a durable store as long as the medium takes for the names and the entry.
    ///
    /// `claim` is what was claimed for it. Where that was forgotten meanwhile, as the writer was slow or stopped, others
    /// may have taken the room: then it is claimed again before the object gets its name.
    private func publish(
        _ publication: Publication,
        _ staged: inout StagedObject?,
        _ claim: inout RoomClaim?,
        _ room: inout RoomTerms
    ) throws(StoreError) -> PublishOutcome {
        let content = publication.content
        while true {
            let patience = room.stripePatience
            let outcome = try objectStripes.withLock(.shared, of: content.digest, patience: patience) {
                () throws(StoreError) -> PublishOutcome? in
                atStep?(.objectLocked)
                do throws(StoreError) {
                    switch try establish(content, &staged, &claim) {
                    case .present: return try writeEntry(publication, patience)
                    case .missing: return .objectMissing
                    case .unclaimed: return nil
                    }
                } catch {
                    // Whoever makes space now would take it for an orphan, if it has its name already.
                    if error.errno?.tellsOfFullDisk ?? false, let object = staged.take() {
                        staged = try objects.keep(object)
                    }
                    throw error
                }
            }
            if let outcome { return outcome }
            claim = try claimRoom(
                forLength: content.length,
                isWritten: true,
                now: publication.created,
                &room
            )
        }
    }

    /// How an object was seen to.
    private enum Establishment {
        case present
        /// There is none, and none was staged.
        case missing
        /// What was claimed for the one that was staged was forgotten, and there is no room at this moment.
        case unclaimed
    }

    /// Sees to it that the object exists and that no sweep under way deletes it.
    ///
    /// The stripe is held shared, so no sweep can delete it between a look and the next. What was staged stays so, in
    /// case that the entry can't be written.
    private func establish(
        _ content: Content,
        _ staged: inout StagedObject?,
        _ claim: inout RoomClaim?
    ) throws(StoreError) -> Establishment {
        guard let object = staged.take() else {
            guard try objects.touch(content.digest) == .present else { return .missing }
            try objects.synchronizeIfDurable(content.digest)
            return .present
        }
        let bytes = directory.allocation(of: content.length)
        var isNew = false
        do throws(StoreError) {
            guard try count(bytes, ofLength: content.length, &claim) else {
                staged = consume object
                return .unclaimed
            }
            defer { if !isNew { control.addUsage(bytes: -bytes, entries: 0) } }
            isNew = try objects.publish(object, as: content.digest)
        } catch {
            staged = consume object
            throw error
        }
        if isNew {
            counters.add(.bytesWritten, content.length)
            staged = consume object
            return .present
        }
        // Somebody else has stored it meanwhile, or what is there is damaged.
        if try objects.touch(content.digest) == .present, try objects.isPresent(content) {
            try objects.synchronizeIfDurable(content.digest)
            return .present
        }
        try objects.replace(content.digest, with: object)
        counters.add(.bytesWritten, content.length)
        return .present
    }

    /// Counts an object that is about to get its name; false where its claim was forgotten and there is no room now.
    ///
    /// It is counted first, and only then is the claim looked at: at each moment others see the one or the other,
    /// however long this process is stopped in between.
    private func count(
        _ bytes: Int64,
        ofLength length: Int,
        _ claim: inout RoomClaim?
    ) throws(StoreError) -> Bool {
        while true {
            control.addUsage(bytes: bytes, entries: 0)
            guard let present = claim, !control.isStanding(present) else { return true }
            control.addUsage(bytes: -bytes, entries: 0)
            guard try room.renew(&claim, forLength: length) else { return false }
        }
    }

    private func writeEntry(_ publication: Publication, _ patience: Duration) throws(StoreError)
        -> PublishOutcome
    {
        let key = publication.key
        // It comes while the kernel sees to the lock.
        control.prefetch(key)
        switch publication.precondition {
        case .none:
            return try entryStripes.withLock(.shared, of: key, patience: patience) { () throws(StoreError) in
                try writeRecord(publication)
            }
        case .unchanged(let expected):
            return try entryStripes.withLock(.exclusive, of: key, patience: patience) {
                () throws(StoreError) in
                guard try entries.read(key)?.bytes == expected else { return .conflict }
                return try writeRecord(publication)
            }
        }
    }

    private func writeRecord(_ publication: Publication) throws(StoreError) -> PublishOutcome {
        atStep?(.entryLocked)
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
