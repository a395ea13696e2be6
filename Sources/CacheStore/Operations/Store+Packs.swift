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
/// built: collections, listing and rules that are retired, which see no packs.
extension Store {
    /// Stores a small value in a pack; returns false if it has to be stored in files.
    ///
    /// One system call (`pwrite`) if the key has a record, three if it is new.
    func pack(_ bytes: Span<UInt8>, for key: Digest, _ record: Record) throws(CacheError) -> Bool {
        guard let packs, bytes.count <= PackLayout.longestValue, isPackable(record) else { return false }
        if try packs.replace(bytes, for: key, record: { followingRules(record) }) { return true }
        let lock = try entries.stripes.lock(.exclusive, stripe: key.stripe)
        let mayHaveEntry = !control.rulesOut(key)
        let change = try control.beginChange(of: key, publishes: false)
        let isPacked = try packs.put(bytes, for: key, followingRules(record), under: lock)
        if isPacked, mayHaveEntry { _ = try entries.delete(key, under: lock) }
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
            && !record.staysHere && control.words != nil && control.remoteNotes == .nothing
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
        /// Nil if a rule has removed the value, or if it is unknown which rules apply.
        let record: Record?
        let freshness: Freshness
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
        switch rules {
        case .nothing: break
        case .unknown: record = nil
        case .these(let rules, let number):
            let meant = rules.meant(for: found.record, upTo: number)
            record = try record?.applying(meant) { .distantPast }
            judged = meant.map(\.moment).max() ?? judged
        }
        return PackedValue(
            value: found.value,
            record: record,
            freshness: Self.freshness(record, max(now, judged))
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

    /// Moves the value of `key` from a pack into files, if it is in a pack.
    ///
    /// Another process may store the key in a pack again at once, so a caller that holds the stripe later checks
    /// ``isPacked(_:)``.
    func unpack(_ key: Digest) throws(CacheError) {
        guard let packs else { return }
        while let word = try packs.word(of: key) {
            // Load this before the rules are applied: a later rule was not applied.
            let rules = control.rulesVersion
            let found = try packedValue(key, now: .distantPast)
            guard let found, let record = found.record else {
                // The record is damaged, or a rule has removed the value.
                try drop(word, of: key)
                continue
            }
            var write = try EntryWrite(record, for: key, if: .packed(word, rules: rules), in: self)
            _ = try write.run(found.value.span)
        }
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
