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
            let verdict = try parts.deleteIfCorrupt(
                content.digest,
                expecting: content.length,
                patience: .zero
            )
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
            _ = try parts.deleteEntry(key, ifStill: stored.bytes, unlessPresent: content, patience: .zero)
        }
    }

    func repair(_ body: () throws(StoreError) -> Void) {
        do throws(StoreError) {
            try body()
        } catch {
            counters.add(.repairFailure)
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
