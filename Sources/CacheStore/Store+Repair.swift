// SPDX-License-Identifier: Apache-2.0

import Platform

extension Store {
    /// Removes what a reader found damaged: the object if its bytes are not those of its name, and the
    /// entry, which promised something else.
    ///
    /// A reader never waits, so a lock that is not free leaves it to the next reader or sweep, as does
    /// any failure: the value is a miss either way.
    func discard(_ key: Digest, _ stored: StoredEntry, _ content: Content) {
        repair { () throws(StoreError) in _ = try deleteIfCorrupt(content.digest, patience: .zero) }
        repair { () throws(StoreError) in
            _ = try deleteEntry(key, ifStill: stored.bytes, patience: .zero)
        }
    }

    func repair(_ body: () throws(StoreError) -> Void) {
        do throws(StoreError) {
            try body()
        } catch {
            counters.add(.repairFailure)
        }
    }

    /// Deletes an object whose bytes don't have the digest that is its name.
    ///
    /// True: it was deleted.
    package func deleteIfCorrupt(_ digest: Digest, patience: Duration) throws(StoreError) -> Bool {
        guard let file = try objects.open(digest) else { return false }
        let path = objects.path(of: digest)
        let (content, damaged) = try describing("read an object", path) { () throws(Errno) in
            (try file.describeContent(), try file.status().identity)
        }
        if content.digest == digest { return false }
        return try objectStripes.withLock(.exclusive, of: digest, patience: patience) {
            () throws(StoreError) in
            // A put may have replaced it by a good one meanwhile.
            guard let status = try objects.status(of: digest), status.identity == damaged,
                try objects.delete(digest)
            else { return false }
            control.addUsage(bytes: -status.allocatedSize, entries: 0)
            return true
        }
    }

    /// Deletes an entry whose record still has these bytes.
    ///
    /// True: it was deleted.
    package func deleteEntry(
        _ key: Digest,
        ifStill bytes: [UInt8],
        patience: Duration = Stripes.writerPatience
    ) throws(StoreError) -> Bool {
        let isDeleted = try entryStripes.withLock(.exclusive, of: key, patience: patience) {
            () throws(StoreError) in
            guard try entries.read(key)?.bytes == bytes, try entries.delete(key) else { return false }
            control.addUsage(bytes: -entries.usualAllocation, entries: -1)
            return true
        }
        if isDeleted { log(.repaired, of: key, name: RecordCodec.decode(bytes, for: key)?.key) }
        return isDeleted
    }

    /// What an object's bytes really are, read and hashed anew; nil where it is gone.
    ///
    /// Memory: one chunk.
    func content(ofObject digest: Digest) throws(StoreError) -> Content? {
        guard let file = try objects.open(digest) else { return nil }
        return try describing("read an object", objects.path(of: digest)) { () throws(Errno) in
            try file.describeContent()
        }
    }
}

extension FileDescriptor {
    /// Digest, length and checksum of the bytes from here to the end.
    ///
    /// Memory: one chunk.
    func describeContent() throws(Errno) -> Content {
        var hash = SHA256()
        var checksum = CRC32C()
        var length = 0
        try forEachChunk(orThrow: { $0 }) { (chunk) throws(Errno) in
            hash.update(chunk)
            checksum.update(chunk)
            length += chunk.count
        }
        let digest = Digest(bytes: hash.finalize())
        return Content(digest: digest, length: length, checksum: checksum.value)
    }
}
