// SPDX-License-Identifier: Apache-2.0

import Platform

/// Functions that keep older values of remote stores from replacing newer ones (``Versions``).
extension Store {
    /// The mode in which a change locks the stripe of its key, unless it needs to be alone for another reason.
    ///
    /// Changes that draw versions are made one at a time: a change with a later version is made later.
    var modeOfChange: LockMode { versions.areInUse ? .exclusive : .shared }

    /// Records a removal of `key`, before its entry is deleted, for the remote stores and in the memory of versions.
    ///
    /// Also if there is no entry: remote stores may have one. Three loads in a directory that has never used remote stores,
    /// and up to five system calls in others.
    ///
    /// - Parameter isSent: whether the removal is sent to the remote stores.
    func recordRemoval(
        of key: Digest,
        isSent: Bool = true,
        under lock: borrowing StripeLock
    ) throws(CacheError) {
        let version = try versions.draw(under: lock)
        if isSent { note(key, .remove, version) }
        if let version { versions.remember(version, of: key, isRemoval: true, under: lock) }
    }

    /// Returns whether a value of another machine is not older than the values of the key that this machine has seen.
    ///
    /// If so, all changes that this machine makes from now on are later than the value. One load in a directory that has
    /// never used remote stores; otherwise three system calls if there is no entry.
    ///
    /// - Parameter stored: the entry of the key; nil if there is none.
    func takes(
        _ version: ChangeVersion,
        of key: Digest,
        replacing stored: StoredEntry?,
        under lock: borrowing StripeLock
    ) throws(CacheError) -> Bool {
        guard versions.areInUse else { return true }
        guard version > versions.cleared else { return false }
        if let stored {
            // The version of a damaged record is not known: a put or a collection replaces or deletes it first.
            guard let record = stored.record, version >= record.version else { return false }
        } else {
            // A rule may have removed an entry that no collection has deleted yet.
            if control.rulesVersion != 0, let bytes = try entries.recordBytes(key) {
                guard let record = Record(decoding: bytes, for: key), version > record.version else {
                    return false
                }
            }
            let latest = try versions.latest(of: key, under: lock)
            guard version > latest.version || latest.isExact && version == latest.version else {
                return false
            }
        }
        try versions.advance(beyond: version)
        return true
    }

    /// Takes a removal from a server: remembers it, and deletes an older entry.
    ///
    /// Three system calls if the removal is remembered already; at most 14 if not.
    package func takeRemoval(_ version: ChangeVersion, of key: Digest) throws(CacheError) {
        guard versions.areInUse else { return }
        let lock = try entries.stripes.lock(.exclusive, stripe: key.stripe)
        let stored = try entries.read(key)
        guard try takes(version, of: key, replacing: stored, under: lock) else { return }
        if stored == nil, try versions.latest(of: key, under: lock) == (version, true) { return }
        // Also if there is no entry: processes may have its value in memory.
        let change = try control.beginChange(of: key, publishes: false)
        versions.remember(version, of: key, isRemoval: true, under: lock)
        if stored != nil, try entries.delete(key, under: lock), let record = stored?.record {
            control.noteRemoval(of: record)
        }
        change.end()
    }

    /// Remembers the version of an entry, which is about to be deleted although its value may be taken from a server again.
    ///
    /// One load in a directory that has never used remote stores, and four system calls in others.
    func rememberVersion(of key: Digest, under lock: borrowing StripeLock) throws(CacheError) {
        if control.words == nil { versions.noteUnversioned() }
        guard versions.areInUse, let bytes = try entries.recordBytes(key) else { return }
        // The version of a damaged record is not known, but not later than this one.
        let record = Record(decoding: bytes, for: key)
        let version = if let record { record.version } else { try versions.draw(under: lock) }
        if let version { versions.remember(version, of: key, isRemoval: false, under: lock) }
    }
}
