// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import FoundationEssentials
import Platform

extension SharedCache {
    /// Stores the contents of an open descriptor if `check` accepts their digest; if `check` throws, nothing is stored.
    package func put(
        contentsOfDescriptor descriptor: Int32,
        forKey key: String,
        options: PutOptions,
        check: (Digest) throws(CacheError) -> Void
    ) throws(CacheError) -> CacheEntry {
        try put(from: "descriptor \(descriptor)", key, options, check: check) { () throws(Errno) in
            try FileDescriptor.duplicate(descriptor)
        }
    }

    /// Stores the contents of the descriptor that `open` returns.
    func put(
        from name: String,
        _ key: String,
        _ options: PutOptions,
        check: (Digest) throws(CacheError) -> Void,
        _ open: () throws(Errno) -> FileDescriptor
    ) throws(CacheError) -> CacheEntry {
        let digest = try settledDigest(ofKey: key)
        let source = try describingFile("read", name, open)
        // Checked early: invalid options are rejected before anything is read, and a directory before anything is copied.
        let draft = try record(
            of: Content(digest: digest, length: 0, checksum: 0),
            key: key,
            options,
            now: now
        )
        try describingFile("read", name) { () throws(Errno) in
            if try source.status().kind == .directory { throw .isDirectory }
        }
        let staged = try withStore { (store, _) throws(CacheError) in
            try store.stage(copying: source, for: digest, draft)
        }
        try check(staged.content.digest)
        // The lifetime begins only when all bytes have arrived, however long the writer of a pipe took.
        let stored = now
        let record = try record(of: staged.content, key: key, options, now: stored)
        var slot = Optional(staged)
        try withStore { (store, _) throws(CacheError) in
            guard let staged = slot.take() else { return }
            try store.put(staged, for: digest, record)
        }
        forget(key, .replaced)
        return CacheEntry(record, keyDigest: digest, key: key, accessed: nil, now: stored)
    }

    /// The length in bytes of the longest value that the limits allow; nil if they allow any.
    package var longestValue: Int64? { core.store.longestValue }

    /// Runs a collection because the disk is full; returns false if it freed nothing.
    package func makeSpace(_ bytes: Int) -> Bool {
        core.store.makeSpace(Int64(bytes), now: now)
    }

    /// Calls `body` with the value's file and entry; returns nil for a miss.
    ///
    /// `body` runs outside of ``withStore(_:)``: if it fails because a file of the caller is missing, that says nothing
    /// about the cache's directory.
    func withFile<Value>(
        forKey key: String,
        _ reading: ReadOptions,
        _ body: (borrowing FileDescriptor, CacheEntry) throws(CacheError) -> Value
    ) throws(CacheError) -> Value? {
        let digest = try settledDigest(ofKey: key)
        guard let hit = try findFile(forKey: key, digest, reading) else { return nil }
        let entry = CacheEntry(hit.record, keyDigest: digest, key: key, accessed: nil, now: now)
        return try body(hit.value, entry)
    }

    /// Opens the value's file, verified and at its start; asks remote servers if this machine does not have the value.
    func findFile(
        forKey key: String,
        _ digest: Digest,
        _ reading: ReadOptions
    ) throws(CacheError) -> StoreHit<FileDescriptor>? {
        if let hit = try openFile(digest, reading) { return hit }
        guard remote != nil, reading.mayAskRemote, findRemotely(key, BytesCodec()) != nil else { return nil }
        return try openFile(digest, reading)
    }

    /// Opens the value's file, verified and at its start; returns nil for a miss.
    private func openFile(
        _ digest: Digest,
        _ reading: ReadOptions
    ) throws(CacheError) -> StoreHit<FileDescriptor>? {
        // Values in memory have no file.
        if reading.source == .memory { return nil }
        let oldest = reading.oldest(at: now)
        let hit = try withStore { (store, now) throws(CacheError) in
            try store.open(digest, now: now, allowingStale: reading.acceptsStale)
        }
        guard let hit else { return nil }
        if hit.record.isOlder(than: oldest) { return nil }
        return hit
    }
}

/// Runs a system call on a file of the caller; its errors describe what was being done to the file.
func describingFile<Value: ~Copyable>(
    _ operation: String,
    _ path: String,
    _ body: () throws(Errno) -> Value
) throws(CacheError) -> Value {
    do throws(Errno) {
        return try body()
    } catch {
        let advice =
            switch error {
            case .tooManyOpenFiles, .outOfMemory: CacheError.advice(on: error)
            case .accessDenied where operation == "write":
                "check the path and its permissions; links and pipes that other users have put there are not used"
            default: "check the path and its permissions"
            }
        throw CacheError(
            CacheError(errno: error, operation, path: path).code,
            "\(operation) \(path): \(error): \(advice)",
            cause: error,
            path: path
        )
    }
}
