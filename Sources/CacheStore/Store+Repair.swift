// SPDX-License-Identifier: Apache-2.0

import Platform

extension Store {
    /// Removes what a reader found damaged: the object if its bytes are not those of its name, and the
    /// entry, which promised something else.
    ///
    /// A reader never waits, so a lock that is not free leaves it to the next reader or sweep, as does
    /// any failure: the value is a miss either way.
    func discard(_ key: Digest, _ stored: StoredEntry, _ content: Content) {
        var isRecordWrong = false
        repair { () throws(StoreError) in
            let verdict = try deleteIfCorrupt(content.digest, expecting: content.length, patience: .zero)
            isRecordWrong = verdict == .sound
        }
        forget(key, stored, unlessPresent: isRecordWrong ? nil : content)
    }

    /// Removes an entry whose object a reader found gone or damaged, as ``discard(_:_:_:)`` does.
    ///
    /// Left there, it would be a value to whoever does not read it.
    func forget(_ key: Digest, _ stored: StoredEntry, unlessPresent content: Content?) {
        guard directory.isWritable else { return }
        repair { () throws(StoreError) in
            _ = try deleteEntry(key, ifStill: stored.bytes, unlessPresent: content, patience: .zero)
        }
    }

    func repair(_ body: () throws(StoreError) -> Void) {
        do throws(StoreError) {
            try body()
        } catch {
            counters.add(.repairFailure)
        }
    }

    /// What became of an object that did not agree with a record.
    enum Verdict {
        /// Its bytes are those of its name.
        case sound
        case deleted
        /// It is gone, or may be either.
        case undecided
    }

    /// Deletes an object whose bytes don't have the digest that is its name.
    ///
    /// - Parameter length: how many bytes a record promises: then no more are read. If those are the value, the
    ///   file was lengthened; if not, and there are more, it is not decided here whether record or object is wrong.
    func deleteIfCorrupt(
        _ digest: Digest,
        expecting length: Int? = nil,
        patience: Duration
    ) throws(StoreError) -> Verdict {
        guard let (content, status) = try content(ofObject: digest, atMost: length) else { return .undecided }
        let isLonger = status.size > Int64(content.length)
        if (content.digest == digest) != isLonger { return isLonger ? .undecided : .sound }
        let isDeleted = try objectStripes.withLock(.exclusive, of: digest, patience: patience) {
            () throws(StoreError) in
            // A put may have replaced it by a good one meanwhile.
            guard let present = try objects.status(of: digest), present.identity == status.identity,
                try objects.delete(digest)
            else { return false }
            control.addUsage(bytes: -status.allocatedSize, entries: 0)
            return true
        }
        return isDeleted ? .deleted : .undecided
    }

    /// Deletes an entry whose record still has these bytes.
    ///
    /// True: it was deleted.
    ///
    /// - Parameter content: what the record promises, where its object was found gone: it stays if that is there
    ///   now. Another put of the same bytes in the same millisecond makes the same record, and an object before it.
    package func deleteEntry(
        _ key: Digest,
        ifStill bytes: [UInt8],
        unlessPresent content: Content? = nil,
        patience: Duration = Stripes.writerPatience
    ) throws(StoreError) -> Bool {
        let isDeleted = try entryStripes.withLock(.exclusive, of: key, patience: patience) {
            () throws(StoreError) in
            guard try entries.read(key)?.bytes == bytes else { return false }
            if let content, try objects.isPresent(content) { return false }
            guard try entries.delete(key) else { return false }
            control.addUsage(bytes: -entries.usualAllocation, entries: -1)
            return true
        }
        if isDeleted { log(.repaired, of: key, name: RecordCodec.decode(bytes, for: key)?.key) }
        return isDeleted
    }

    /// What an object's bytes really are, read and hashed anew, at most so many of them, and its state; nil where
    /// it is gone.
    ///
    /// Memory: one chunk.
    func content(
        ofObject digest: Digest,
        atMost length: Int? = nil
    ) throws(StoreError) -> (content: Content, status: FileStatus)? {
        guard let file = try objects.open(digest) else { return nil }
        return try describing("read an object", objects.path(of: digest)) { () throws(Errno) in
            let status = try file.status()
            return (try file.describeContent(atMost: length ?? .max), status)
        }
    }
}

extension FileStatus {
    /// Whether the file is much longer than what it takes on disk, as one is that was lengthened by a call
    /// (truncate(2)): how long it should be is asked before it is read.
    ///
    /// Values may be like that, too, where the file system compresses, or shares a file with holes.
    var hasLargeHoles: Bool { size - allocatedSize > 64 << 20 }
}

extension FileDescriptor {
    /// Digest, length and checksum of the bytes from here to the end, or of the first so many.
    ///
    /// Memory: one chunk.
    func describeContent(atMost most: Int = .max) throws(Errno) -> Content {
        var hash = SHA256()
        var checksum = CRC32C()
        var length = 0
        try forEachChunk(atMost: most, orThrow: { $0 }) { (chunk) throws(Errno) in
            hash.update(chunk)
            checksum.update(chunk)
            length += chunk.count
        }
        let digest = Digest(bytes: hash.finalize())
        return Content(digest: digest, length: length, checksum: checksum.value)
    }
}
