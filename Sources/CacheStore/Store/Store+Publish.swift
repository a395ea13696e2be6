// SPDX-License-Identifier: Apache-2.0

import Platform

/// How a record and its object come to be what everybody reads.
extension Store {
    /// Publishes with bytes in memory, which are written out only where no object has them yet.
    ///
    /// The look before the stripe is taken saves a turn of it: what it finds is touched under it, and where
    /// that fails, written after all; what it finds missing or unusable is written before it. What is written
    /// although it is there, unseen or made meanwhile, is let go again for the one that is.
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
            // Of the entry alone.
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

    /// Publishes a record, and its object if that is staged; else it must exist already.
    ///
    /// The bytes have been written before the stripe is taken, so it is held for microseconds however large
    /// the value is; in a durable store as long as the medium takes for the names and the entry.
    ///
    /// `claim` is what was claimed for it. Where that was forgotten meanwhile, as the writer was slow or stopped, others
    /// may have taken the room: then it is claimed again before the object gets its name.
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
                    let outcome = try writeEntry(publication, patience, mayCreate: mayCreate)
                    // No sweep should take it for an orphan while an entry is claimed.
                    if outcome == nil, var object = staged.take() {
                        try objects.keep(&object)
                        staged = consume object
                    }
                    return outcome
                } catch {
                    // Whoever makes space now would take it for an orphan, if it has its name already.
                    if error.cause?.tellsOfFullDisk ?? false, var object = staged.take() {
                        try objects.keep(&object)
                        staged = consume object
                    }
                    throw error
                }
            }
            if let outcome { return outcome }
            // Where the entry that was to be replaced is gone, there will be one more.
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

    /// Counts an object that is about to get its name; false where its claim was forgotten and there is no room now.
    ///
    /// It is counted first, and only then is the claim looked at: at each moment others see the one or the other,
    /// however long this process is stopped in between.
    ///
    /// - Parameter bytes: on disk.
    private func count(_ bytes: Int64, _ claim: inout RoomClaim?) throws(CacheError) -> Bool {
        while true {
            control.addUsage(bytes: bytes, entries: 0)
            guard let present = claim, !control.isStanding(present) else { return true }
            control.addUsage(bytes: -bytes, entries: 0)
            guard try room.renew(&claim, written: bytes) else { return false }
        }
    }

    /// Sees to it that the object exists and that no sweep under way deletes it; false where there is none, and none was
    /// staged.
    ///
    /// The stripe is held shared, so no sweep can delete it between a look and the next. What was staged has been
    /// counted, and stays staged in case that the entry can't be written.
    private func establish(_ content: Content, _ staged: inout TemporaryFile?) throws(CacheError) -> Bool {
        guard var object = staged.take() else {
            guard try objects.touch(content.digest) else { return false }
            try objects.synchronizeIfDurable(content.digest)
            return true
        }
        let size = object.allocatedSize
        // It has its name since an attempt before, and is counted.
        if object.isKept, try objects.touch(content.digest), try objects.isPresent(content) {
            control.addUsage(bytes: -size, entries: 0)
            staged = consume object
            return true
        }
        var isNew = false
        do throws(CacheError) {
            // One that is there is counted already, and so is what takes its place.
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
            // Somebody else has stored it meanwhile.
            try objects.synchronizeIfDurable(content.digest)
            return true
        } else {
            // What is there is damaged.
            let damaged = try directory.status(of: content.digest, .objects)
            try objects.replace(content.digest, with: &object)
            let isFile = damaged?.kind == .regular
            control.addUsage(bytes: size - (isFile ? damaged?.allocatedSize ?? 0 : 0), entries: 0)
        }
        counters.add(.bytesWritten, content.length)
        return true
    }

    /// nil where there was no entry to replace and none may be made, as none was claimed.
    private func writeEntry(
        _ publication: Publication,
        _ patience: Duration,
        mayCreate: Bool
    ) throws(CacheError) -> PublishOutcome? {
        let key = publication.key
        // It comes while the kernel sees to the lock.
        control.prefetch(key)
        // Else a put that has asked for the rules before the latest came, and is still to write, would take this one's
        // place with a record that is judged by that rule.
        let mustBeAlone = control.rulesVersion != 0 && control.hasWriters(of: key)
        let mode: LockMode = publication.expected == nil && !mustBeAlone ? .shared : .exclusive
        return try entries.stripes.withLock(mode, stripe: key.stripe, patience: patience) {
            () throws(CacheError) in
            guard let expected = publication.expected else {
                return try writeRecord(publication, under: nil, mayCreate: mayCreate)
            }
            // Before the look: what a later rule would make of the entry was not looked at.
            let rules = control.rulesVersion
            guard StoredEntry.areSame(try entries.read(key), expected) else { return .conflict }
            // A removal leaves no other trace of itself where there was no entry.
            if let seen = publication.seen, control.isCurrent(seen) != true { return .conflict }
            return try writeRecord(publication, under: rules, mayCreate: mayCreate)
        }
    }

    /// - Parameter rules: the version that must still be in force; nil: any.
    private func writeRecord(
        _ publication: Publication,
        under rules: UInt64?,
        mayCreate: Bool
    ) throws(CacheError) -> PublishOutcome? {
        atStep?(.entryLocked)
        let key = publication.key
        publication.willWrite?()
        // What came from there need not be told there.
        if publication.seen == nil, !publication.staysHere {
            note(key, .put(content: publication.content.digest, length: publication.content.length))
        }
        var isMissing = false
        let (version, generation) = try entries.writing(key) { () throws(CacheError) -> UInt64? in
            // A rule that comes into force from here on may be meant for the value.
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
            if isNew == false { control.noteReplacement() }
            return version
        }
        if isMissing { return nil }
        guard let version else { return .conflict }
        // One that came meanwhile may have raised the generation before this writer did.
        return .published(control.rulesVersion == version ? generation : nil)
    }
}
