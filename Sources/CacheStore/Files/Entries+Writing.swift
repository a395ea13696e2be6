// SPDX-License-Identifier: Apache-2.0

import Platform

/// Writing records, in either form.
extension Entries {
    /// Makes `bytes` the record of `key`, whatever was there, and adds what that takes on disk to the usage; false where
    /// an entry was replaced, nil where there was none to replace and `mayCreate` is false.
    ///
    /// The caller holds the entry's stripe.
    ///
    /// `accessed` is the access time that a new entry gets; nil: the file system's present. Three calls to
    /// overwrite a record in an attribute, and one more where entries may take space of their own; four for a new
    /// entry, and one for its time. One more for a record of a length whose space is not known yet.
    func write(
        _ bytes: [UInt8],
        for key: Digest,
        accessed: Timestamp?,
        mayCreate: Bool = true
    ) throws(CacheError) -> Bool? {
        try describing("write an entry", directory.path(of: key, .entries)) { () throws(Errno) in
            if form == .attribute {
                switch try writeAttribute(bytes, for: key, accessed, mayCreate) {
                case .overwritten: return false
                case .missing: return nil
                case .created: return true
                case .createdEmpty:
                    _ = try writeSidecar(bytes, for: key, accessed, mayCreate: true)
                    return true
                case .refused: break
                }
            }
            return try writeSidecar(bytes, for: key, accessed, mayCreate: mayCreate)
        }
    }

    /// How an attempt to write an attribute ended.
    private enum AttributeOutcome {
        case overwritten, created
        /// There is no entry, and none may be made.
        case missing
        /// The record does not fit an attribute, or none can be set: the entry is there, without one.
        case createdEmpty
        /// The record does not fit an attribute, or none can be set.
        case refused
    }

    private func writeAttribute(
        _ bytes: [UInt8],
        for key: Digest,
        _ accessed: Timestamp?,
        _ mayCreate: Bool
    ) throws(Errno) -> AttributeOutcome {
        let path = StoreLayout.path(of: key)
        if expectedAllocation(ofRecord: bytes.count) > 0 { control.noteEntryWithSpace() }
        if mayCreate, novelty.isLikely, let outcome = try create(bytes, at: path, for: key, accessed) {
            return outcome
        }
        while true {
            // Only another writer of the key can make it wrong, and then the count until the next sweep.
            if let before = try allocation(ofEntry: path) {
                do throws(Errno) {
                    try directory.entries.setAttribute(
                        StoreLayout.recordAttribute,
                        of: path,
                        to: bytes.span
                    )
                    // A former sidecar keeps its contents.
                    let after = allocation(ofRecord: bytes.count, isAlone: before.isEmpty) {
                        () throws(Errno) in try directory.entries.presentStatus(of: path)
                    }
                    control.addUsage(bytes: after - before.bytes, entries: 0)
                    // If it was removed meanwhile, it is not made again: the record would be published twice.
                    if isDurable {
                        _ = try ifExists { () throws(Errno) in
                            try synchronize(directory.entries.open(path, .readOnly), key)
                        }
                    }
                    novelty.note(isNew: false)
                    return .overwritten
                } catch {
                    // The same for a symbolic link or a pipe, which can't have the attribute: a
                    // sidecar takes its place, and what the link leads to is left alone.
                    if error.leavesSidecar { return .refused }
                    if error != .noEntry { throw error }
                }
            }
            if !mayCreate { return .missing }
            if let outcome = try create(bytes, at: path, for: key, accessed) {
                novelty.note(isNew: true)
                return outcome
            }
        }
    }

    // MARK: Space

    /// Bytes: such a record is expected to take nothing beside the inode of its entry, as ext4 keeps it there; a longer
    /// one may take a block.
    private static let shortRecord = 68

    /// What an entry takes on disk with a record of that length, before it is written: as such ones have taken, else at
    /// most so much; no system call.
    func expectedAllocation(ofRecord length: Int) -> Int64 {
        if form == .sidecar { return control.expectedAllocation(of: length) }
        if let known = directory.recordSizes.size(ofLength: length) { return known }
        return length <= Self.shortRecord ? 0 : directory.allocation(of: length)
    }

    /// What an entry takes with a record of that length in its attribute, which is written; `status` is asked where no
    /// such was seen yet.
    ///
    /// - Parameter isAlone: whether the file has no contents.
    private func allocation(
        ofRecord length: Int,
        isAlone: Bool = true,
        _ status: () throws(Errno) -> FileStatus?
    ) -> Int64 {
        if isAlone, let known = directory.recordSizes.size(ofLength: length) { return known }
        // If its status can't be read, the expected size counts until the next sweep.
        let found = bestEffort { () throws(Errno) in try status()?.allocatedSize }
        guard let found, let found else { return expectedAllocation(ofRecord: length) }
        if isAlone { directory.recordSizes.note(found, ofLength: length) }
        if found > 0, length <= Self.shortRecord { control.noteEntryWithSpace() }
        return found
    }

    /// What the entry at `path` takes on disk; nil: there is none.
    ///
    /// One system call; none, and 0, where no entry takes any space of its own, whether there is this one or not.
    private func allocation(ofEntry path: RelativePath) throws(Errno) -> (bytes: Int64, isEmpty: Bool)? {
        if control.entriesTakeNoSpace { return (0, true) }
        return try directory.entries.presentStatus(of: path).map { ($0.allocatedSize, $0.size == 0) }
    }

    /// Deletes the entry of `key` and subtracts it from the usage; false if there was none.
    ///
    /// The caller holds its stripe. Three system calls; four where entries may take space of their own.
    func delete(_ key: Digest) throws(CacheError) -> Bool {
        let taken = try describing("look at an entry", directory.path(of: key, .entries)) {
            () throws(Errno) in
            try ifFiled { () throws(Errno) in try allocation(ofEntry: StoreLayout.path(of: key)) }
        }
        guard try directory.delete(key, .entries) else { return false }
        control.addUsage(bytes: -((taken ?? nil)?.bytes ?? 0), entries: -1)
        return true
    }

    /// nil if the entry exists already.
    private func create(
        _ bytes: [UInt8],
        at path: RelativePath,
        for key: Digest,
        _ accessed: Timestamp?
    ) throws(Errno) -> AttributeOutcome? {
        do throws(Errno) {
            let file = try directory.entries.making(StoreLayout.shard(of: key)) { () throws(Errno) in
                try directory.entries.open(path, Self.new, mode: FileMode.file)
            }
            // It counts from now on, whatever becomes of the record.
            control.addUsage(bytes: 0, entries: 1)
            // The time first: the attribute is what makes it an entry.
            if let accessed { try file.setAccessTime(accessed) }
            try file.setAttribute(StoreLayout.recordAttribute, to: bytes.span)
            let taken = allocation(ofRecord: bytes.count) { () throws(Errno) in try file.status() }
            control.addUsage(bytes: taken, entries: 0)
            if isDurable { try synchronize(file, key) }
            return .created
        } catch {
            if error == .exists { return nil }
            // The empty file stays for the sidecar to replace, or for a sweep: to unlink it here could
            // hit the record that another writer has given it meanwhile.
            if error.leavesSidecar { return .createdEmpty }
            throw error
        }
    }

    /// Made once: putting an option set of another module together takes 2,000 instructions.
    private static let new: OpenFlags = [.writeOnly, .create, .exclusive]

    /// False where an entry was replaced, nil where there was none and `mayCreate` is false.
    private func writeSidecar(
        _ bytes: [UInt8],
        for key: Digest,
        _ accessed: Timestamp?,
        mayCreate: Bool
    ) throws(Errno) -> Bool? {
        let temporary = try TemporaryFile(in: directory, mode: FileMode.file)
        try temporary.file.writeAll(bytes.span)
        if let accessed { try temporary.file.setAccessTime(accessed) }
        if isDurable { try temporary.file.synchronizeAll() }
        let taken = control.allocation(of: temporary.file, length: bytes.count)
        control.noteEntryWithSpace()
        // Only another writer of the key can make it wrong, and then the count until the next sweep.
        let replaced = try directory.entries.presentStatus(of: StoreLayout.path(of: key))?.allocatedSize
        if replaced == nil, !mayCreate { return nil }
        try directory.entries.making(StoreLayout.shard(of: key)) { () throws(Errno) in
            try temporary.rename(to: directory.entries, StoreLayout.path(of: key))
        }
        control.addUsage(bytes: taken - (replaced ?? 0), entries: replaced == nil ? 1 : 0)
        if isDurable { try directory.entries.synchronizeNames(of: key) }
        return replaced == nil
    }

    private func synchronize(_ file: borrowing FileDescriptor, _ key: Digest) throws(Errno) {
        try file.synchronizeAll()
        try directory.entries.synchronizeNames(of: key)
    }
}
