// SPDX-License-Identifier: Apache-2.0

import Platform

/// The result of a write of an entry.
package enum WriteResult: Sendable, Equatable {
    /// The value was written, and may be held in memory under this generation.
    ///
    /// The generation is nil if the value may not be held: another process was writing meanwhile, or there is no generation
    /// table.
    case written(Generation?)
    /// The condition no longer held.
    case conflict
    /// The record names an object that is missing, and there were no bytes to create it from.
    case objectMissing

    package var isWritten: Bool {
        if case .written = self { true } else { false }
    }

    /// The generation under which the value may be held; nil if it may not, or was not written.
    package var generation: Generation? {
        if case .written(let generation) = self { generation } else { nil }
    }
}

/// A write of one entry: a put, or a new record for a value that is stored already.
///
/// The write reserves space, ensures that the object exists under its name, and writes the record, which is the commit. In
/// this order, a crash leaves no entry without its object. At worst it leaves an object that no entry names, which a
/// collection deletes.
struct EntryWrite: ~Copyable {
    /// When the entry is written.
    enum Condition {
        case always
        /// If the entry is still the same (nil: absent).
        case unchanged(StoredEntry?)
        /// If the entry is still the same (nil: absent), and no process has written or removed the key since the generation
        /// was read.
        case unwritten(since: Generation, StoredEntry?)
        /// If the value is still in a pack, where this word names it, and no rule has come into force since the given
        /// version of the rules.
        case packed(PackWord, rules: UInt64)
    }

    private let store: Store
    private let key: Digest
    private let content: Content
    /// The time of creation by the caller's clock.
    private let created: Timestamp
    /// The record's ``Record/removableAt``.
    private let removableAt: Timestamp?
    /// The present time by that clock.
    ///
    /// It differs from ``created`` if the value is rewritten or comes from another machine.
    private let now: Timestamp
    /// Whether the value is not sent to other machines.
    private let staysHere: Bool
    /// The version of a value that comes from another machine, or that is stored without one.
    private let version: ChangeVersion
    /// The record as it is stored on disk.
    private let record: [UInt8]
    /// The access time of a new entry; nil if any time near the present will do.
    private let accessed: Timestamp?
    private let condition: Condition
    /// Called just before the writer is registered in the key's generation and the entry is written.
    private let willWrite: (() -> Void)?

    /// How to wait for space.
    private var wait: SpaceWait
    /// The space for the object and the entry, until it is counted as used.
    private var reservation = Reservation()
    /// The object's file, if this write or its caller has created one.
    private var object: TemporaryFile?
    /// Whether an attempt has named and counted the object.
    private var hasLinked = false

    /// Prepares a write.
    ///
    /// - Parameters:
    ///   - accessed: the access time of a new entry, if it does not follow from the record.
    ///   - object: the object's file, if it is written and has no name yet.
    ///   - reservation: the space for the object, if it is reserved.
    /// - Throws: ``CacheError/Code/invalidArgument`` for a record that is too long, before anything is written.
    init(
        _ record: Record,
        for key: Digest,
        if condition: Condition = .always,
        accessed: Timestamp? = nil,
        object: consuming TemporaryFile? = nil,
        reservation: consuming Reservation = Reservation(),
        wait: SpaceWait = SpaceWait(),
        willWrite: (() -> Void)? = nil,
        in store: Store
    ) throws(CacheError) {
        let bytes = record.encoded(for: key)
        try Self.check(bytes, in: store)
        self.store = store
        self.key = key
        content = record.content
        created = record.created
        removableAt = record.removableAt
        now = accessed ?? record.created
        staysHere = record.staysHere
        version = record.version
        self.record = bytes
        self.accessed = accessed ?? Self.firstAccess(of: record)
        self.condition = condition
        self.willWrite = willWrite
        self.wait = wait
        self.reservation = reservation
        self.object = object
    }

    /// The longest version in a record, in bytes: the difference in microseconds to any creation time, and the machine.
    private static let longestVersion = 12

    /// The longest record that the write may write, in bytes.
    private var recordLength: Int { record.count + (store.versions.areInUse ? Self.longestVersion : 0) }

    /// Refuses a record that is too long.
    static func check(_ record: [UInt8], in store: Store) throws(CacheError) {
        // The 25 bytes: a draft does not contain the length of its content yet, which takes up to ten bytes. The number of
        // the rules in force takes ten more, its item two, and the length of all items three.
        let version = store.versions.areInUse ? Self.longestVersion : 0
        if record.count + 25 + version > Record.maximumSize {
            let operation = "store \(record.count) bytes of metadata in"
            throw CacheError(.invalidArgument, to: operation, path: store.directory.path)
        }
    }

    /// Returns the access time that a new entry must have; nil if the file system's present time will do.
    ///
    /// The file system's present time is a moment later than `created`, so it would count as an access if accesses prolong
    /// the value's life. It is meaningless if the caller's clock is not the file system's. Otherwise it is as good for the
    /// order of eviction, and saves a system call.
    private static func firstAccess(of record: Record) -> Timestamp? {
        if record.idleLifetime != nil { return record.created }
        let (now, created) = (Timestamp.coarseNow, record.created)
        let isFar =
            created.advanced(byNanoseconds: nearEnough) < now
            || now.advanced(byNanoseconds: nearEnough) < created
        return isFar ? created : nil
    }

    /// The error that the order of eviction may have, in nanoseconds: one second.
    ///
    /// This is far less than the default access granularity, and far more than a put takes or than the kernel's coarse
    /// clock lags.
    private static let nearEnough: Int64 = 1_000_000_000

    // MARK: Steps

    /// Writes the entry, with an object of these bytes.
    ///
    /// It looks for the object before it locks the stripe. If the object exists, it is touched under the stripe; if that
    /// fails, the bytes are written after all. If the object is missing or unusable, the bytes are written before the
    /// stripe is locked. If another process has created the object meanwhile, the written file is discarded.
    mutating func run(_ bytes: Span<UInt8>) throws(CacheError) -> WriteResult {
        while true {
            do throws(CacheError) {
                if let result = try useObject() { return result }
                try makeObject(bytes)
                return try publish()
            } catch {
                // The next attempt looks for an object again.
                object = nil
                reservation = Reservation()
                try makeSpace(after: error, forLength: content.length)
            }
        }
    }

    /// Writes the entry, with the object that was passed or, if none was passed, with the existing one.
    mutating func run() throws(CacheError) -> WriteResult {
        while true {
            do throws(CacheError) {
                try reserveRest()
                return try publish()
            } catch {
                // An object that was passed stays on disk, so its reservation stays, too.
                if object == nil { reservation = Reservation() }
                try makeSpace(after: error, forLength: object == nil ? 0 : content.length)
            }
        }
    }

    /// Runs a collection if the disk or a quota was full, so that the write can be repeated; otherwise throws `error`.
    ///
    /// - Parameter length: the number of bytes still to be written.
    private mutating func makeSpace(
        after error: CacheError,
        forLength length: Int
    ) throws(CacheError) {
        guard store.makesSpace(after: error, forLength: length, now: now, &wait) else { throw error }
    }

    /// Reserves space for the entry, and for the object if this write has created it or is about to create it.
    ///
    /// - Parameter isWritten: whether the object is on disk already.
    private mutating func reserve(withObject: Bool = true, isWritten: Bool = false) throws(CacheError) {
        reservation = Reservation()
        reservation = try store.reserve(
            length: withObject ? content.length : 0,
            record: recordLength,
            isWritten: isWritten,
            replacing: Replacement(key: key, content: content, mayGoFirst: isUnconditional),
            now: now,
            &wait
        )
    }

    /// Reserves the space that is not reserved yet for a write that does not write an object's bytes.
    private mutating func reserveRest() throws(CacheError) {
        if object != nil {
            // The reservation is too small if the length was not known: a pipe, a file that has grown, or one in /proc,
            // whose size is 0.
            let size = object?.allocatedSize ?? 0
            if (reservation.claim?.bytes ?? -1) < size { try reserve(isWritten: true) }
        } else if isUnconditional {
            try reserve(withObject: false)
        } else {
            // The record may need space if it replaces a shorter one.
            let before = expected.map { store.entries.expectedAllocation(ofRecord: $0.bytes.count) } ?? 0
            guard store.entries.expectedAllocation(ofRecord: recordLength) > before else { return }
            reservation = try store.reserve(length: 0, record: recordLength, entries: 0, now: now, &wait)
        }
    }

    private var isUnconditional: Bool {
        if case .always = condition { true } else { false }
    }

    /// Writes the entry with the existing object; returns nil if there is none.
    private mutating func useObject() throws(CacheError) -> WriteResult? {
        guard try store.objects.isWorthTrying(content) else { return nil }
        try store.refuseTooLong(content.length)
        try reserve(withObject: false)
        try store.objects.synchronizeIfDurable(content.digest)
        let result = try publish()
        return result == .objectMissing ? nil : result
    }

    /// Writes the object's bytes to a file that has no name yet.
    private mutating func makeObject(_ bytes: Span<UInt8>) throws(CacheError) {
        try reserve()
        store.atStep?(.claimed)
        object = try store.objects.stage(bytes, as: content.digest)
        store.atStep?(.written)
    }

    /// Gives the object its name, if this write has created one, and then writes the record.
    ///
    /// The bytes are written before the stripe is locked, so the stripe is held for microseconds, however large the value is;
    /// in a durable store for as long as the medium takes to write the names and the entry.
    ///
    /// If the claim was forgotten because the writer was slow or stopped, other writers may have taken the space. Then this
    /// reserves space again before the object gets its name.
    private mutating func publish() throws(CacheError) -> WriteResult {
        while true {
            if let result = try publishUnderLock() { return result }
            try reserve(isWritten: true)
        }
    }

    /// Publishes with the object's stripe held; returns nil if more space must be reserved first.
    private mutating func publishUnderLock() throws(CacheError) -> WriteResult? {
        let lock = try store.objects.stripes.lock(
            .shared,
            stripe: content.digest.stripe,
            patience: wait.stripePatience
        )
        store.atStep?(.objectLocked)
        do throws(CacheError) {
            switch try linkObject(under: lock) {
            case .missing: return .objectMissing
            case .noSpace: return nil
            case .linked: break
            }
            let result = try writeEntry(under: lock)
            if result == nil { try keepObject() }
            return result
        } catch {
            if error.cause?.isDiskFull ?? false { try keepObject() }
            throw error
        }
    }

    /// Keeps the object, which may already have its name, so that no sweep deletes it as an orphan while space is made for
    /// the entry.
    private mutating func keepObject() throws(CacheError) {
        guard var kept = object.take() else { return }
        do throws(CacheError) {
            try store.objects.keep(&kept)
        } catch {
            // Without links a sweep may delete the object; then it is written again.
            guard error.cause?.leavesCopy ?? false else { throw error }
        }
        object = consume kept
    }

    /// The result of ``linkObject(under:)``.
    private enum ObjectResult { case linked, missing, noSpace }

    /// Counts the object and gives it its name, or keeps running sweeps from deleting the existing object.
    ///
    /// The stripe is held shared, so no sweep can delete the object between two checks.
    private mutating func linkObject(under lock: borrowing StripeLock) throws(CacheError) -> ObjectResult {
        let (objects, control, digest) = (store.objects, store.control, content.digest)
        guard var made = object.take() else {
            guard try objects.touch(digest, under: lock) else { return .missing }
            try objects.synchronizeIfDurable(digest)
            return .linked
        }
        // It is named and counted already, by an earlier attempt or, if a named file would replace it, by another writer.
        if made.isNamed || hasLinked, try isPresent(under: lock) {
            object = consume made
            try objects.synchronizeIfDurable(digest)
            return .linked
        }
        let size = made.allocatedSize
        // Note the size before counting it: a sweep that does not find the object yet must not subtract it from the usage.
        control.noteUnnamed(size, stripe: digest.stripe)
        defer { control.noteUnnamed(-size, stripe: digest.stripe) }
        guard try countObject(size) else {
            object = consume made
            return .noSpace
        }
        store.atStep?(.counted)
        var isNew = false
        do throws(CacheError) {
            // An object that exists already is counted; the difference for one that replaces it is counted below.
            defer { if !isNew { control.addUsage(bytes: -size, entries: 0) } }
            isNew = try objects.publish(made, as: digest)
        } catch {
            object = consume made
            throw error
        }
        if isNew {
            object = consume made
        } else if try isPresent(under: lock) {
            // Another writer has stored the object meanwhile.
            try objects.synchronizeIfDurable(digest)
            return .linked
        } else {
            // The existing object is damaged.
            let damaged = try store.object(digest)
            try objects.replace(digest, with: &made)
            control.addUsage(bytes: size - (damaged?.allocatedSize ?? 0), entries: 0)
        }
        hasLinked = true
        store.counters.add(.bytesWritten, content.length)
        return .linked
    }

    /// Returns whether the object exists and has the right length, after keeping running sweeps from deleting it.
    private func isPresent(under lock: borrowing StripeLock) throws(CacheError) -> Bool {
        guard try store.objects.touch(content.digest, under: lock) else { return false }
        return try store.objects.isPresent(content)
    }

    /// Counts an object that is about to get its name; returns false if its claim was forgotten and there is no space now.
    ///
    /// It counts the object first and checks the claim afterwards. So at each moment other processes see the count or the
    /// claim, even if this process is stopped in between.
    ///
    /// - Parameter bytes: the size of the object on disk.
    private mutating func countObject(_ bytes: Int64) throws(CacheError) -> Bool {
        while true {
            store.control.addUsage(bytes: bytes, entries: 0)
            guard let claim = reservation.claim, !claim.isStanding else { return true }
            store.control.addUsage(bytes: -bytes, entries: 0)
            guard try store.renew(&reservation, written: bytes) else { return false }
        }
    }

    /// Writes the record with the entry's stripe held; returns nil if there is no entry to replace and no space was
    /// reserved for a new one.
    ///
    /// - Parameter objectLock: the stripe of the object, which keeps sweeps from deleting it.
    private func writeEntry(under objectLock: borrowing StripeLock) throws(CacheError) -> WriteResult? {
        let (control, entries) = (store.control, store.entries)
        // The processor loads the words while the kernel handles the lock.
        control.prefetch(key)
        // If rules are in force, writers of a key write one at a time. Otherwise a put that has read the rules before the
        // latest one came into force could replace this entry with a record that the latest rule removes.
        let mustBeAlone = control.rulesVersion != 0 && control.hasWriters(of: key)
        let mode: LockMode = isUnconditional && !mustBeAlone ? store.modeOfChange : .exclusive
        let lock = try entries.stripes.lock(mode, stripe: key.stripe, patience: wait.stripePatience)
        // Load this before the entry is read: a rule that comes into force later was not applied to the entry.
        let rules = control.rulesVersion
        let packed = try store.packs?.word(of: key)
        guard try isMet(condition, packed, under: lock) else { return .conflict }
        store.atStep?(.entryLocked)
        willWrite?()
        let change = try control.beginChange(of: key)
        // A rule that comes into force after this may remove the value.
        let rulesInForce = control.rulesVersion
        if !isUnconditional, rules != rulesInForce { return .conflict }
        control.noteCreated(created)
        let order = isKnownElsewhere ? nil : try store.versions.draw(under: lock)
        if !isKnownElsewhere, !staysHere {
            store.note(key, .put(content: content.digest, length: content.length), order ?? version)
        }
        let mayBeMeant = rulesInForce != 0 && control.mayBeMeant(created)
        let isNew = try entries.write(
            completed(order, followedRule: mayBeMeant ? rulesInForce : nil),
            for: key,
            accessed: accessed,
            mayCreate: reservation.includesEntry,
            under: lock
        )
        guard let isNew else { return nil }
        // Until then a get returns the value in the pack. If a put has replaced that meanwhile, its value is the later one.
        let isReplaced = packed.map { store.packs?.remove($0, of: key, under: lock) == false } ?? false
        if isReplaced, !isUnconditional { return .conflict }
        noteGarbage(replacesEntry: !isNew)
        let generation = change.end()
        // An overwrite in a pack changes no generation.
        if isReplaced { return .written(nil) }
        // A new rule may have raised the generation before this writer did.
        return .written(control.rulesVersion == rulesInForce ? generation : nil)
    }

    /// Whether the value comes from a remote store, to which it must not be sent again, or is only moved.
    private var isKnownElsewhere: Bool {
        switch condition {
        case .unwritten, .packed: true
        case .always, .unchanged: false
        }
    }

    /// - Parameter packed: the word of the key's value in a pack.
    private func isMet(
        _ condition: Condition,
        _ packed: PackWord?,
        under lock: borrowing StripeLock
    ) throws(CacheError) -> Bool {
        switch condition {
        case .always: return true
        case .packed(let word, let rules):
            return packed?.identity == word.identity && store.control.rulesVersion == rules
        case .unchanged(let expected):
            let stored = try store.entries.read(key)
            return packed == nil && StoredEntry.areSame(stored, expected)
        case .unwritten(let seen, let expected):
            let stored = try store.entries.read(key)
            // A removal of an absent entry changes only the generation.
            guard packed == nil, StoredEntry.areSame(stored, expected),
                store.control.isCurrent(seen) == true
            else { return false }
            return try store.takes(version, of: key, replacing: stored, under: lock)
        }
    }

    /// Returns the record with the fields that were not known before the stripe was locked.
    ///
    /// - Parameters:
    ///   - version: the version of the change.
    ///   - followedRule: the number up to which rules do not apply to the record, if its creation time does not imply that.
    private func completed(_ version: ChangeVersion?, followedRule: UInt64?) -> [UInt8] {
        if version == nil, followedRule == nil { return record }
        // The bytes always decode, as they were encoded from a record.
        guard var record = Record(decoding: record, for: key) else { return record }
        if let version { record.version = version }
        if let followedRule { record.followedRule = followedRule }
        return record.encoded(for: key)
    }

    /// Records the garbage that the write creates, now or when the entry expires.
    private func noteGarbage(replacesEntry: Bool) {
        let (control, length) = (store.control, content.length)
        control.countExpiration(1, length: length, created: created, at: removableAt)
        guard replacesEntry else { return }
        if let old = expected?.record {
            control.countExpiration(
                -1,
                length: old.content.length,
                created: old.created,
                at: old.removableAt
            )
        }
        // If the object already existed, it may be the one that the replaced entry names, so no bytes are counted.
        // Otherwise the old object is assumed to be as large as the new one: its real size would cost a system call.
        control.noteReplacement(bytes: object != nil ? control.expectedAllocation(of: length) : 0)
    }

    /// The entry that is replaced, if the condition contains one.
    private var expected: StoredEntry? {
        switch condition {
        case .always, .packed: nil
        case .unchanged(let entry), .unwritten(_, let entry): entry
        }
    }
}
