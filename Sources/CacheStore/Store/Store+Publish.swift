// SPDX-License-Identifier: Apache-2.0

import Platform

/// Publishing a record and its object, so that all processes read them.
extension Store {
    /// Publishes a value in memory, and writes its bytes only if no object has them yet.
    ///
    /// It looks for the object before it locks the stripe. If the object is there, it is touched under the stripe; if that
    /// fails, the bytes are written after all. If it is missing or unusable, the bytes are written before the stripe is
    /// locked. If another process has made the object meanwhile, the written file is discarded.
    func publish(
        _ publication: Publication,
        _ bytes: Span<UInt8>,
        _ terms: RoomTerms
    ) throws(CacheError) -> PublishOutcome {
        let (length, now) = (publication.content.length, publication.moment)
        return try room.makingSpace(forLength: length, now: now, terms) { (terms) throws(CacheError) in
            try publishOnce(publication, bytes, &terms)
        }
    }

    private func publishOnce(
        _ publication: Publication,
        _ bytes: Span<UInt8>,
        _ terms: inout RoomTerms
    ) throws(CacheError) -> PublishOutcome {
        let content = publication.content
        var staged: TemporaryFile?
        if try objects.isWorthTrying(content) {
            try room.refuseTooLong(content.length)
            // The claim is for the entry alone.
            var claim = try claimRoom(
                forLength: 0,
                record: publication.bytes.count,
                for: publication,
                now: publication.moment,
                &terms
            )
            defer { room.giveBack(claim) }
            try objects.synchronizeIfDurable(content.digest)
            let outcome = try publish(publication, &staged, &claim, &terms)
            if outcome != .objectMissing { return outcome }
        }
        var claim = try claimRoom(
            forLength: content.length,
            record: publication.bytes.count,
            for: publication,
            now: publication.moment,
            &terms
        )
        defer { room.giveBack(claim) }
        atStep?(.claimed)
        staged = try objects.stage(bytes, as: content.digest)
        atStep?(.written)
        return try publish(publication, &staged, &claim, &terms)
    }

    /// Publishes a record with its object, which is staged or exists already.
    ///
    /// The bytes are written before the stripe is locked, so the stripe is held for microseconds, however large the value is;
    /// in a durable store for as long as the medium takes to write the names and the entry.
    ///
    /// If the claim was forgotten because the writer was slow or stopped, others may have taken the room. Then it claims
    /// again before the object gets its name.
    ///
    /// - Parameter claim: the room that was claimed for the record and the object.
    func publish(
        _ publication: Publication,
        _ staged: inout TemporaryFile?,
        _ claim: inout RoomClaim?,
        _ terms: inout RoomTerms
    ) throws(CacheError) -> PublishOutcome {
        let content = publication.content
        while true {
            let (stripe, patience) = (content.digest.stripe, terms.stripePatience)
            let outcome = try objects.stripes.withLock(.shared, stripe: stripe, patience: patience) {
                () throws(CacheError) -> PublishOutcome? in
                atStep?(.objectLocked)
                do throws(CacheError) {
                    switch try name(content, &staged, &claim) {
                    case true?: break
                    case false?: return .objectMissing
                    case nil: return nil
                    }
                    let mayCreate = claim.map { $0.entries > 0 } ?? true
                    // An object that was there already may be the one of the entry that is replaced.
                    let isNew = staged != nil
                    let outcome = try writeEntry(publication, isNew, patience, mayCreate: mayCreate)
                    // Keep the object, so that no sweep deletes it as an orphan while room for the entry is claimed.
                    if outcome == nil, var object = staged.take() {
                        try objects.keep(&object)
                        staged = consume object
                    }
                    return outcome
                } catch {
                    // If the object has its name already, the sweep that now makes space would delete it as an orphan.
                    if error.cause?.tellsOfFullDisk ?? false, var object = staged.take() {
                        try objects.keep(&object)
                        staged = consume object
                    }
                    throw error
                }
            }
            if let outcome { return outcome }
            // The entry that would have been replaced is missing, so the claim is now for one more entry.
            room.giveBack(claim.take())
            claim = try claimRoom(
                forLength: content.length,
                record: publication.bytes.count,
                isWritten: true,
                for: publication,
                now: publication.moment,
                &terms
            )
        }
    }

    /// Counts the object and gives it its name.
    ///
    /// - Returns: false if there is no object, nil if there is no room for it.
    private func name(
        _ content: Content,
        _ staged: inout TemporaryFile?,
        _ claim: inout RoomClaim?
    ) throws(CacheError) -> Bool? {
        guard let size = staged?.allocatedSize else { return try establish(content, &staged) }
        let stripe = content.digest.stripe
        // A sweep that does not find the object must not subtract it, so this comes before the count.
        control.noteUnnamed(size, stripe: stripe)
        defer { control.noteUnnamed(-size, stripe: stripe) }
        guard try count(size, &claim) else { return nil }
        atStep?(.counted)
        return try establish(content, &staged)
    }

    /// Counts an object that is about to get its name; false if its claim was forgotten and there is no room now.
    ///
    /// It counts first and checks the claim afterwards. So at each moment other processes see one of the two, even if this
    /// process is stopped in between.
    ///
    /// - Parameter bytes: the size of the object on disk.
    /// - Parameter bytes: the size of the object on disk.
    private func count(_ bytes: Int64, _ claim: inout RoomClaim?) throws(CacheError) -> Bool {
        while true {
            control.addUsage(bytes: bytes, entries: 0)
            guard let present = claim, !control.isStanding(present) else { return true }
            control.addUsage(bytes: -bytes, entries: 0)
            guard try room.renew(&claim, written: bytes) else { return false }
        }
    }

    /// Ensures that the object exists and that no running sweep deletes it; false if it does not exist and none is staged.
    ///
    /// The caller holds the stripe shared, so no sweep can delete the object between two checks. A staged object has been
    /// counted. It stays staged in case the entry can't be written.
    private func establish(_ content: Content, _ staged: inout TemporaryFile?) throws(CacheError) -> Bool {
        guard var object = staged.take() else {
            guard try objects.touch(content.digest) else { return false }
            try objects.synchronizeIfDurable(content.digest)
            return true
        }
        let size = object.allocatedSize
        // An earlier attempt has given it its name and counted it.
        if object.isKept, try objects.touch(content.digest), try objects.isPresent(content) {
            control.addUsage(bytes: -size, entries: 0)
            staged = consume object
            return true
        }
        var isNew = false
        do throws(CacheError) {
            // An object that already exists is counted, and so is one that replaces it.
            defer {
                if !isNew { control.addUsage(bytes: -size, entries: 0) }
            }
            isNew = try objects.publish(object, as: content.digest)
        } catch {
            staged = consume object
            throw error
        }
        if isNew {
            staged = consume object
        } else if try objects.touch(content.digest), try objects.isPresent(content) {
            // Another writer has stored it meanwhile.
            try objects.synchronizeIfDurable(content.digest)
            return true
        } else {
            // The existing object is damaged.
            let damaged = try directory.status(of: content.digest, .objects)
            try objects.replace(content.digest, with: &object)
            let isFile = damaged?.kind == .regular
            control.addUsage(bytes: size - (isFile ? damaged?.allocatedSize ?? 0 : 0), entries: 0)
        }
        counters.add(.bytesWritten, content.length)
        return true
    }

    /// Writes the entry; nil if there is no entry to replace and no room was claimed for a new one.
    ///
    /// - Parameter isObjectNew: whether this put has created the object.
    private func writeEntry(
        _ publication: Publication,
        _ isObjectNew: Bool,
        _ patience: Duration,
        mayCreate: Bool
    ) throws(CacheError) -> PublishOutcome? {
        let key = publication.key
        // The processor loads it while the kernel handles the lock.
        control.prefetch(key)
        // If rules are in force the writers of a key go one by one. Otherwise a put that has read the rules before the
        // latest one could replace this entry with a record that the latest rule removes.
        let mustBeAlone = control.rulesVersion != 0 && control.hasWriters(of: key)
        let mode: LockMode = publication.expected == nil && !mustBeAlone ? .shared : .exclusive
        return try entries.stripes.withLock(mode, stripe: key.stripe, patience: patience) {
            () throws(CacheError) in
            guard let expected = publication.expected else {
                return try writeRecord(publication, isObjectNew, under: nil, mayCreate: mayCreate)
            }
            // Loaded before the entry is read: a rule that comes later was not applied to the entry.
            let rules = control.rulesVersion
            guard StoredEntry.areSame(try entries.read(key), expected) else { return .conflict }
            // A removal of an absent entry changes nothing else.
            if let seen = publication.seen, control.isCurrent(seen) != true { return .conflict }
            return try writeRecord(publication, isObjectNew, under: rules, mayCreate: mayCreate)
        }
    }

    /// Writes the record; nil as ``writeEntry(_:_:_:mayCreate:)``.
    ///
    /// - Parameter rules: the version of the rules that must still be in force; nil: any.
    private func writeRecord(
        _ publication: Publication,
        _ isObjectNew: Bool,
        under rules: UInt64?,
        mayCreate: Bool
    ) throws(CacheError) -> PublishOutcome? {
        atStep?(.entryLocked)
        let key = publication.key
        publication.willWrite?()
        // An entry that came from a remote store is not sent to it.
        if publication.seen == nil, !publication.staysHere {
            note(key, .put(content: publication.content.digest, length: publication.content.length))
        }
        var isMissing = false
        let (version, generation) = try entries.writing(key) { () throws(CacheError) -> UInt64? in
            // A rule that comes into force after this may remove the value.
            let version = control.rulesVersion
            if let rules, rules != version { return nil }
            var bytes = publication.bytes
            if version != 0, control.mayBeMeant(publication.created) {
                bytes = publication.recordBytes(following: version)
            }
            control.noteCreated(publication.created)
            let isNew = try entries.write(
                bytes,
                for: key,
                accessed: publication.accessed,
                mayCreate: mayCreate
            )
            isMissing = isNew == nil
            if let isNew { noteWritten(publication, replacesEntry: !isNew, isObjectNew) }
            return version
        }
        if isMissing { return nil }
        guard let version else { return .conflict }
        // A new rule may have raised the generation before this writer did.
        return .published(control.rulesVersion == version ? generation : nil)
    }

    /// Records the garbage that the write creates, now or when the entry expires.
    private func noteWritten(_ publication: Publication, replacesEntry: Bool, _ isObjectNew: Bool) {
        let length = publication.content.length
        control.countExpiration(
            1,
            length: length,
            created: publication.created,
            at: publication.removableAt
        )
        guard replacesEntry else { return }
        if let old = publication.expected??.record {
            control.countExpiration(
                -1,
                length: old.content.length,
                created: old.created,
                at: old.removableAt
            )
        }
        // The old object is assumed to be as large as the new one: its real size would cost a system call.
        control.noteReplacement(bytes: isObjectNew ? control.expectedAllocation(of: length) : 0)
    }
}
