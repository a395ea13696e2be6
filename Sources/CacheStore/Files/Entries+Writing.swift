// SPDX-License-Identifier: Apache-2.0

import Platform

/// Functions that write and delete records, in an attribute or in a sidecar.
extension Entries {
    /// Stores `bytes` as the record of `key`, replacing any present one, and adds their size on disk to the usage.
    ///
    /// Makes three system calls to overwrite a record in an attribute, and one more if entries may take space outside
    /// their inodes; four for a new entry, and one more to set its access time; in both cases one more if the space for a
    /// record of this length is not known yet.
    ///
    /// - Parameters:
    ///   - accessed: the access time of a new entry; nil for the file system's present time.
    ///   - mayCreate: whether to create an entry if there is none.
    ///
    /// - Returns: false if an entry was replaced, true if one was created, nil if there was none to replace and `mayCreate`
    ///   is false.
    func write(
        _ bytes: [UInt8],
        for key: Digest,
        accessed: Timestamp?,
        mayCreate: Bool = true,
        under lock: borrowing StripeLock
    ) throws(CacheError) -> Bool? {
        do throws(Errno) {
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
        } catch {
            throw CacheError(errno: error, "write an entry", path: directory.path(of: key, .entries))
        }
    }

    /// The outcome of an attempt to write an attribute.
    private enum AttributeOutcome {
        case overwritten, created
        /// There is no entry, and none may be created.
        case missing
        /// The record does not fit into an attribute, or none can be set: the entry exists without a record.
        case createdEmpty
        /// The record does not fit into an attribute, or none can be set.
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
        if mayCreate, newKeyPredictor.isLikely, let outcome = try create(bytes, at: path, for: key, accessed)
        {
            return outcome
        }
        while true {
            // Only another writer of the key can change this size before the write; the usage is then wrong until the
            // next sweep.
            if let before = try allocation(ofEntry: path) {
                do throws(Errno) {
                    try directory.entries.setAttribute(
                        StoreLayout.recordAttribute,
                        of: path,
                        to: bytes.span
                    )
                    // An entry that was a sidecar keeps its contents, which take space too.
                    let after = allocation(ofRecord: bytes.count, isAlone: before.isEmpty) {
                        () throws(Errno) in try directory.entries.presentStatus(of: path)
                    }
                    control.addUsage(bytes: after - before.bytes, entries: 0)
                    // If the entry was removed meanwhile, it is not recreated: that would publish the record twice.
                    if isDurable {
                        _ = try ifExists { () throws(Errno) in
                            try synchronize(directory.entries.open(path, .readOnly), key)
                        }
                    }
                    newKeyPredictor.note(isNew: false)
                    return .overwritten
                } catch {
                    // A symbolic link or a pipe in the entry's place can't have the attribute, either: a sidecar replaces
                    // it, and the target of the link is left alone.
                    if error.leavesSidecar { return .refused }
                    if error != .noEntry { throw error }
                }
            }
            if !mayCreate { return .missing }
            if let outcome = try create(bytes, at: path, for: key, accessed) {
                newKeyPredictor.note(isNew: true)
                return outcome
            }
        }
    }

    // MARK: Space

    /// The length in bytes up to which a record is expected to take no space outside the inode of its entry.
    ///
    /// ext4 stores such a record in the inode; a longer one may take a block.
    private static let shortRecord = 68

    /// Returns the expected size on disk of an entry with a record of this length, without a system call.
    ///
    /// It is the size of earlier entries with records of this length, if known. Otherwise it is 0 for a record that an
    /// inode should have room for, and the size of a file of this length for a longer one.
    func expectedAllocation(ofRecord length: Int) -> Int64 {
        if form == .sidecar { return control.expectedAllocation(of: length) }
        if let known = directory.recordSizes.size(ofLength: length) { return known }
        return length <= Self.shortRecord ? 0 : directory.allocation(of: length)
    }

    /// Returns the size on disk of an entry whose record of this length was written to its attribute.
    ///
    /// `status` is called only if the size for this length is not known yet, or if the file has contents.
    ///
    /// - Parameter isAlone: whether the file has no contents.
    private func allocation(
        ofRecord length: Int,
        isAlone: Bool = true,
        _ status: () throws(Errno) -> FileStatus?
    ) -> Int64 {
        if isAlone, let known = directory.recordSizes.size(ofLength: length) { return known }
        // If the status can't be read, the expected size counts until the next sweep.
        let found = bestEffort { () throws(Errno) in try status()?.allocatedSize }
        guard let found, let found else { return expectedAllocation(ofRecord: length) }
        if isAlone { directory.recordSizes.note(found, ofLength: length) }
        if found > 0, length <= Self.shortRecord { control.noteEntryWithSpace() }
        return found
    }

    /// Returns the size on disk of the entry at `path`; nil if it does not exist.
    ///
    /// Makes one system call. If no entry takes space outside its inode, it makes none and returns 0, whether or not the
    /// entry exists.
    private func allocation(ofEntry path: RelativePath) throws(Errno) -> (bytes: Int64, isEmpty: Bool)? {
        if control.entriesTakeNoSpace { return (0, true) }
        return try directory.entries.presentStatus(of: path).map { ($0.allocatedSize, $0.size == 0) }
    }

    /// Deletes the entry of `key` and subtracts it from the usage; false if there was none.
    ///
    /// Three system calls; four if entries may take space outside their inodes.
    func delete(_ key: Digest, under lock: borrowing StripeLock) throws(CacheError) -> Bool {
        let taken = try describing("look at an entry", directory.path(of: key, .entries)) {
            () throws(Errno) in
            try ifFiled { () throws(Errno) in try allocation(ofEntry: StoreLayout.path(of: key)) }
        }
        guard try directory.delete(key, .entries) else { return false }
        control.addUsage(bytes: -((taken ?? nil)?.bytes ?? 0), entries: -1)
        return true
    }

    /// Creates an entry with its record; nil if the entry exists already.
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
            // Count the entry now: it exists even if the record can't be written.
            control.addUsage(bytes: 0, entries: 1)
            // Set the time first: the attribute is what makes the file an entry.
            if let accessed { try file.setAccessTime(accessed) }
            try file.setAttribute(StoreLayout.recordAttribute, to: bytes.span)
            let taken = allocation(ofRecord: bytes.count) { () throws(Errno) in try file.status() }
            control.addUsage(bytes: taken, entries: 0)
            if isDurable { try synchronize(file, key) }
            return .created
        } catch {
            if error == .exists { return nil }
            // The empty file stays until the sidecar replaces it or a sweep deletes it. Unlinking it here could delete a
            // record that another writer has written to it meanwhile.
            if error.leavesSidecar { return .createdEmpty }
            throw error
        }
    }

    /// A constant: constructing an option set of another module takes 2,000 instructions.
    private static let new: OpenFlags = [.writeOnly, .create, .exclusive]

    /// Writes a sidecar; false if an entry was replaced, nil if there was none and `mayCreate` is false.
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
        // Only another writer of the key can change this size before the rename; the usage is then wrong until the next
        // sweep.
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
