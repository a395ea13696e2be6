// SPDX-License-Identifier: Apache-2.0

import Platform

/// Writing records, in either form.
extension Entries {
    /// Makes `bytes` the record of `key`, whatever was there.
    ///
    /// The caller holds the entry's stripe.
    ///
    /// `accessed` is the access time that a new entry gets; nil: the file system's present. One call to
    /// overwrite a record in an attribute; four for a new entry, and one for its time.
    func write(_ bytes: [UInt8], for key: Digest, accessed: Timestamp?) throws(CacheError) -> Growth {
        try describing("write an entry", directory.path(of: key, .entries)) { () throws(Errno) in
            if form == .attribute, let growth = try writeAttribute(bytes, for: key, accessed) {
                return growth
            }
            return try writeSidecar(bytes, for: key, accessed)
        }
    }

    /// What a write added to what the cache takes on disk.
    struct Growth {
        var entries = 0
        var bytes: Int64 = 0
    }

    /// What an entry takes on disk, as a rule: in attribute form nothing beside its inode, else a block.
    var usualAllocation: Int64 { form == .attribute ? 0 : directory.fileSystem.blockSize }

    /// nil where the record does not fit an attribute.
    private func writeAttribute(
        _ bytes: [UInt8],
        for key: Digest,
        _ accessed: Timestamp?
    ) throws(Errno) -> Growth? {
        let path = StoreLayout.path(of: key)
        if novelty.isLikely, let isWritten = try create(bytes, at: path, for: key, accessed) {
            return isWritten ? Growth(entries: 1, bytes: usualAllocation) : nil
        }
        while true {
            do throws(Errno) {
                try directory.entries.setAttribute(StoreLayout.recordAttribute, of: path, to: bytes.span)
                // Removed meanwhile, it is not made anew: the record would be published twice.
                if isDurable {
                    _ = try ifExists { () throws(Errno) in
                        try synchronize(directory.entries.open(path, .readOnly), key)
                    }
                }
                novelty.note(isNew: false)
                return Growth()
            } catch {
                if Self.doesNotFit(error) { return nil }
                // A symbolic link that somebody has put there can't have the attribute, nor can a pipe or the like; a
                // sidecar takes its place, and what it leads to is left alone.
                if error == .notPermitted || error.tellsOfNoFile, try !isFile(path) { return nil }
                if error != .noEntry { throw error }
            }
            if let isWritten = try create(bytes, at: path, for: key, accessed) {
                novelty.note(isNew: true)
                return isWritten ? Growth(entries: 1, bytes: usualAllocation) : nil
            }
        }
    }

    private func isFile(_ path: RelativePath) throws(Errno) -> Bool {
        try directory.entries.presentStatus(of: path)?.kind ?? .regular == .regular
    }

    /// nil where somebody else has created it meanwhile, false where the record does not fit.
    private func create(
        _ bytes: [UInt8],
        at path: RelativePath,
        for key: Digest,
        _ accessed: Timestamp?
    ) throws(Errno) -> Bool? {
        do throws(Errno) {
            let file = try directory.entries.making(StoreLayout.shard(of: key)) { () throws(Errno) in
                try directory.entries.open(path, Self.new, mode: FileMode.file)
            }
            // The time first: the attribute is what makes it an entry.
            if let accessed { try file.setAccessTime(accessed) }
            try file.setAttribute(StoreLayout.recordAttribute, to: bytes.span)
            if isDurable { try synchronize(file, key) }
            return true
        } catch {
            if error == .exists { return nil }
            // The empty file stays for the sidecar to replace, or for a sweep: to unlink it here could
            // hit the record that another writer has given it meanwhile.
            if Self.doesNotFit(error) { return false }
            throw error
        }
    }

    /// Made once: putting an option set of another module together takes 2,000 instructions.
    private static let new: OpenFlags = [.writeOnly, .create, .exclusive]

    /// Whether the file system has no room for an attribute of that size, or none for any.
    ///
    /// ext4 says ENOSPC to what does not fit its one block, so the sidecar must find out if the disk is full.
    private static func doesNotFit(_ error: Errno) -> Bool {
        [.noSpace, .outOfRange, .argumentListTooLong, .notSupported].contains(error)
    }

    private func writeSidecar(
        _ bytes: [UInt8],
        for key: Digest,
        _ accessed: Timestamp?
    ) throws(Errno) -> Growth {
        let temporary = try TemporaryFile(in: directory, mode: FileMode.file)
        try temporary.file.writeAll(bytes.span)
        if let accessed { try temporary.file.setAccessTime(accessed) }
        if isDurable { try temporary.file.synchronizeAll() }
        // Only another writer of the key can make it wrong, and then the count until the next sweep.
        let replaced = try directory.entries.presentStatus(of: StoreLayout.path(of: key))?.allocatedSize
        try directory.entries.withShard(of: key) { (shard) throws(Errno) in
            try temporary.rename(to: shard, StoreLayout.fileName(of: key))
        }
        if isDurable { try directory.entries.synchronizeNames(of: key) }
        return Growth(
            entries: replaced == nil ? 1 : 0,
            bytes: directory.allocation(of: bytes.count) - (replaced ?? 0)
        )
    }

    private func synchronize(_ file: borrowing FileDescriptor, _ key: Digest) throws(Errno) {
        try file.synchronizeAll()
        try directory.entries.synchronizeNames(of: key)
    }
}
