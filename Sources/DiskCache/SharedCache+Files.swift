// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import FoundationEssentials
import Platform

extension SharedCache {
    /// Stores the contents of a file under `key`.
    ///
    /// If the file system supports it (Btrfs, XFS), the extents are shared; otherwise the kernel copies the bytes. Needs 256
    /// KiB of memory, regardless of the size. The stored value is the bytes that were read, even if the file changes
    /// meanwhile; the file itself is not modified.
    ///
    /// - Returns: the new entry.
    /// - Throws: ``CacheError``, also if the file cannot be read.
    @discardableResult
    public func put(
        contentsOfFile path: String,
        forKey key: String,
        options: PutOptions = PutOptions()
    ) throws(CacheError) -> CacheEntry {
        try put(from: path, key, options, check: { _ in }) { () throws(Errno) in
            try FileDescriptor(opening: path, .readOnly)
        }
    }

    /// Stores the contents of an open descriptor, from its offset to its end, under `key`.
    ///
    /// The descriptor may be a pipe. It stays open.
    ///
    /// - Returns: the new entry.
    /// - Throws: ``CacheError``, also if the descriptor cannot be read.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func put(
        contentsOfDescriptor descriptor: Int32,
        forKey key: String,
        options: PutOptions = PutOptions()
    ) throws(CacheError) -> CacheEntry {
        try put(from: "descriptor \(descriptor)", key, options, check: { _ in }) { () throws(Errno) in
            try FileDescriptor.duplicate(descriptor)
        }
    }

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

    private func put(
        from name: String,
        _ key: String,
        _ options: PutOptions,
        check: (Digest) throws(CacheError) -> Void,
        _ open: () throws(Errno) -> FileDescriptor
    ) throws(CacheError) -> CacheEntry {
        let digest = try settledDigest(ofKey: key)
        let source = try describing("read", name, open)
        // Invalid options are rejected before anything is read, and a directory before anything is copied.
        let draft = try record(
            of: Content(digest: digest, length: 0, checksum: 0),
            key: key,
            options,
            now: now
        )
        try describing("read", name) { () throws(Errno) in
            if try source.status().kind == .directory { throw .isDirectory }
        }
        let staged = try withStore { (store, _) throws(CacheError) in
            try store.stage(copying: source, for: digest, draft)
        }
        try check(staged.content.digest)
        // The lifetime begins once all bytes have arrived, however long a pipe took.
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

    /// Runs a collection because the disk is full; returns false if it freed nothing.
    package func makeSpace(_ bytes: Int) -> Bool {
        core.store.makeSpace(Int64(bytes), now: now)
    }

    /// Copies the value of `key` to a file.
    ///
    /// The file is replaced atomically, with the complete and verified value. Anything other than a regular file (a device,
    /// a pipe) is written to instead. Needs 256 KiB of memory. With ``ReadOptions/Source/memory`` every call is a miss.
    ///
    /// - Returns: the entry; nil for a miss, which leaves the file unchanged.
    @discardableResult
    public func copyValue(
        forKey key: String,
        toFile path: String,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheEntry? {
        try withFile(forKey: key, reading) { (file, entry) throws(CacheError) in
            try describing("write", path) { () throws(Errno) in
                try OutputFile.write(path) { (output) throws(Errno) in try output.copyAll(from: file) }
            }
            return entry
        }
    }

    /// Writes the value of `key` to an open descriptor, which stays open.
    ///
    /// The whole value is verified before its first byte is written. Needs 256 KiB of memory. With
    /// ``ReadOptions/Source/memory`` every call is a miss.
    ///
    /// - Returns: the entry; nil for a miss, which writes nothing.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func copyValue(
        forKey key: String,
        toDescriptor descriptor: Int32,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheEntry? {
        try withFile(forKey: key, reading) { (file, entry) throws(CacheError) in
            try describing("write", "descriptor \(descriptor)") { () throws(Errno) in
                _ = try FileDescriptor.duplicate(descriptor).copyAll(from: file)
            }
            return entry
        }
    }

    /// Calls `body` with a descriptor that is open for reading at the start of the value, already verified.
    ///
    /// Inside `body` the value stays readable whatever happens to the entry; the descriptor is closed afterwards. Mapping it
    /// into memory is safe, because objects never change. With ``ReadOptions/Source/memory`` every call is a miss.
    ///
    /// - Returns: the result of `body`; nil for a miss.
    /// - Throws: ``CacheError``, and the error of `body`.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func withDescriptor<Value>(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        _ body: (Int32, CacheEntry) throws -> Value
    ) throws -> Value? {
        let result = try withFile(forKey: key, reading) { (file, entry) throws(CacheError) in
            Result { try body(file.rawValue, entry) }
        }
        return try result?.get()
    }

    /// Calls `body` with the value's file and entry; returns nil for a miss.
    ///
    /// `body` runs outside of ``withStore(_:)``: a missing file of the caller says nothing about the directory.
    private func withFile<Value>(
        forKey key: String,
        _ reading: ReadOptions,
        _ body: (borrowing FileDescriptor, CacheEntry) throws(CacheError) -> Value
    ) throws(CacheError) -> Value? {
        let digest = try settledDigest(ofKey: key)
        guard let hit = try findFile(forKey: key, digest, reading) else { return nil }
        let entry = CacheEntry(hit.record, keyDigest: digest, key: key, accessed: nil, now: now)
        return try body(hit.value, entry)
    }

    /// Opens the value's file, verified and at its start; asks remote stores if this machine does not have it.
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

    /// Runs a system call on a file of the caller; its errors describe what was being done to the file.
    private func describing<Value: ~Copyable>(
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
}
