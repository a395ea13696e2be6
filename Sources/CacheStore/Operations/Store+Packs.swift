// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// Values in packs (``Packs``), if ``StoreOptions/packsSmallValues`` is set.
///
/// If a key has a word in the index of packs, the record that it names is the value, whatever entry exists. A put replaces
/// the word without a lock on disk. All other changes of a word hold the key's stripe and raise its generation: so values
/// from files, and absences, that processes hold in memory need no look at the index. Values from packs are not held.
/// `HomesModel` explores the order of the steps.
///
/// A put, a get and a removal of a key use packs. All other calls first move the value into files (``unpack(_:)``). Not yet
/// built: collections, listing and rules that are retired, which see no packs; background puts, whose own value counts as
/// the latest although another process may replace it in a pack; and overwrites that yield to a call that moves the value.
extension Store {
    /// Stores a small value in a pack; returns false if it has to be stored in files.
    ///
    /// One system call (`pwrite`) if the key has a record, three if it is new, and those of a deletion if it has an entry.
    func pack(_ bytes: Span<UInt8>, for key: Digest, _ record: Record) throws(CacheError) -> Bool {
        guard let packs, bytes.count <= PackLayout.longestValue, isPackable(record) else { return false }
        // Without the stripe nothing shows that another control file has replaced this one since.
        if control.countingWords != nil,
            try packs.replace(bytes, for: key, record: { followingRules(record) })
        {
            return true
        }
        let lock = try entries.stripes.lock(.exclusive, stripe: key.stripe)
        let mayHaveEntry = !control.rulesOut(key)
        let change = try control.beginChange(of: key, publishes: false)
        let isPacked = try packs.put(bytes, for: key, under: lock) { followingRules(record) }
        if isPacked, mayHaveEntry, try entries.delete(key, under: lock) { control.noteReplacement(bytes: 0) }
        change.end()
        return isPacked
    }

    /// Whether a value may be in a pack: it needs no time of its last access, claims no space and is not sent to other
    /// machines.
    private func isPackable(_ record: Record) -> Bool {
        let limits = configuration.limits
        let isUnlimited =
            limits.maximumSize == nil && limits.maximumEntries == nil && limits.minimumFree == nil
            && limits.maximumAge == nil && limits.maximumIdleTime == nil && limits.maximumValueSize == nil
        return isUnlimited && !entries.isDurable && record.idleLifetime == nil && !record.isNothing
            && !record.staysHere && control.words != nil && !versions.areInUse
    }

    /// Returns the record with the number of the rules that do not apply to it, if its creation time does not show that.
    private func followingRules(_ record: Record) -> Record {
        let version = control.rulesVersion
        control.noteCreated(record.created)
        guard version != 0, control.mayBeMeant(record.created) else { return record }
        var record = record
        record.followedRule = version
        return record
    }

    /// A value in a pack, after the rules in force were applied.
    struct PackedValue {
        let value: Data
        /// Nil if a rule has removed the value, or if ``isUndecided`` is true.
        let record: Record?
        /// Whether it is unknown which rules apply: readers treat the value as a miss.
        var isUndecided = false
        let freshness: Freshness
        /// Whether a rule has expired the value, so that it may be returned at no time.
        var isExpiredByRule = false
    }

    /// Returns the value of `key` in a pack; nil if there is none.
    ///
    /// No system call, except for the first read after a change of the rules.
    func packedValue(_ key: Digest, now: Timestamp) throws(CacheError) -> PackedValue? {
        guard let packs else { return nil }
        let rules = try control.rulesInForce()
        guard let found = try packs.get(key) else { return nil }
        var record: Record? = found.record
        record?.content = Content(of: found.value.span)
        var judged = Timestamp.distantPast
        var isUndecided = false
        switch rules {
        case .nothing: break
        case .unknown: (record, isUndecided) = (nil, true)
        case .these(let rules, let number):
            let meant = rules.meant(for: found.record, upTo: number)
            record = try record?.applying(meant) { .distantPast }
            judged = meant.map(\.moment).max() ?? judged
        }
        return PackedValue(
            value: found.value,
            record: record,
            isUndecided: isUndecided,
            freshness: Self.freshness(record, max(now, judged)),
            isExpiredByRule: judged > .distantPast && Self.freshness(record, judged) == .expired
        )
    }

    private static func freshness(_ record: Record?, _ now: Timestamp) -> Freshness {
        guard let record else { return .expired }
        if record.expires == nil { return record.isOfFuture(at: now) ? .expired : .fresh }
        return record.freshness(at: now, accessed: .distantPast)
    }

    /// Returns whether the key has a value in a pack.
    func isPacked(_ key: Digest) throws(CacheError) -> Bool {
        guard let packs else { return false }
        return try packs.word(of: key) != nil
    }

    /// Returns whether no process has moved the value between a pack and files since the caller loaded `generation`.
    ///
    /// If none has, an entry that the caller did not find in the meantime did not exist.
    func isSettled(_ key: Digest, since generation: Generation?) throws(CacheError) -> Bool {
        guard packs != nil else { return true }
        return try !isPacked(key) && generation == control.generation(of: key)
    }

    /// How often a call moves a value into files that other processes store in a pack again.
    static let unpackAttempts = 64

    /// Moves the value of `key` from a pack into files, if it is in a pack.
    ///
    /// Another process may store the key in a pack again at once: see ``isSettled(_:since:)``. The caller does not hold the
    /// key's stripe.
    ///
    /// - Throws: ``CacheError/Code/busy`` if other processes keep replacing the value, and an error if it is unknown which
    ///   rules apply.
    func unpack(_ key: Digest) throws(CacheError) {
        guard let packs else { return }
        for _ in 0..<Self.unpackAttempts {
            guard let word = try packs.word(of: key) else { return }
            // Load this before the rules are applied: a later rule was not applied.
            let rules = control.rulesVersion
            let found = try packedValue(key, now: .distantPast)
            if let found, found.isUndecided {
                throw CacheError(errno: .badMessage, "read the rules of", path: directory.path)
            }
            guard let found, let record = found.record, !found.isExpiredByRule else {
                // The record is damaged, or a rule has removed or expired the value.
                try drop(word, of: key)
                continue
            }
            var write = try EntryWrite(record, for: key, if: .packed(word, rules: rules), in: self)
            _ = try write.run(found.value.span)
        }
        throw CacheError(.busy, to: "move a value out of a pack in", path: directory.path, cause: .timedOut)
    }

    /// Removes a word, and the entry that a killed process may have left below it.
    private func drop(_ word: PackWord, of key: Digest) throws(CacheError) {
        let lock = try entries.stripes.lock(.exclusive, stripe: key.stripe)
        guard let packs, try packs.word(of: key)?.identity == word.identity else { return }
        let change = try control.beginChange(of: key, publishes: false)
        _ = try entries.delete(key, under: lock)
        _ = packs.remove(word, of: key, under: lock)
        change.end()
    }
}
