// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
import Platform

// Files, descriptors and chunks are bytes: a cache and its namespaces have these calls, typed views do not.

extension KeyedCache where Codec == BytesCodec {
    // MARK: Storing

    /// Stores the contents of a file under `key`.
    ///
    /// If the file system supports it (Btrfs, XFS), the file and the value share their extents; otherwise the kernel copies
    /// the bytes. Needs 256 KiB of memory, regardless of the size. If the file changes meanwhile, the stored value is the
    /// bytes that were read. The file itself is not modified.
    ///
    /// - Returns: the new entry.
    /// - Throws: ``CacheError``, also if the file cannot be read.
    @discardableResult
    public func put(
        contentsOfFile path: String,
        forKey key: String,
        options: PutOptions? = nil
    ) throws(CacheError) -> CacheEntry {
        try cache.put(
            from: path,
            whole(key),
            options ?? self.options,
            check: { _ in }
        ) { () throws(Errno) in try FileDescriptor(opening: path, .readOnly) }
    }

    /// Stores the contents of a file under `key`, on a library thread.
    @discardableResult
    public func put(
        contentsOfFile path: String,
        forKey key: String,
        options: PutOptions? = nil
    ) async throws(CacheError) -> CacheEntry {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try self.put(contentsOfFile: path, forKey: key, options: options)
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
        options: PutOptions? = nil
    ) throws(CacheError) -> CacheEntry {
        try cache.put(
            contentsOfDescriptor: descriptor,
            forKey: whole(key),
            options: options ?? self.options,
            check: { _ in }
        )
    }

    // MARK: Reading

    /// Copies the value of `key` to a file.
    ///
    /// The file is replaced atomically, with the complete and verified value. If the path names something other than a
    /// regular file (a device, a pipe), the value is written to it instead. Needs 256 KiB of memory. With
    /// ``ReadOptions/Source/memory`` every call is a miss.
    ///
    /// - Returns: the entry; nil for a miss, which leaves the file unchanged.
    @discardableResult
    public func copyValue(
        forKey key: String,
        toFile path: String,
        reading: ReadOptions = ReadOptions()
    ) throws(CacheError) -> CacheEntry? {
        try cache.withFile(forKey: whole(key), reading) { (file, entry) throws(CacheError) in
            try describingFile("write", path) { () throws(Errno) in
                try OutputFile.write(path) { (output) throws(Errno) in try output.copyAll(from: file) }
            }
            return entry
        }
    }

    /// Copies the value of `key` to a file, on a library thread; returns nil for a miss.
    @discardableResult
    public func copyValue(
        forKey key: String,
        toFile path: String,
        reading: ReadOptions = ReadOptions()
    ) async throws(CacheError) -> CacheEntry? {
        try await offload(on: .lengthy) { () throws(CacheError) in
            try self.copyValue(forKey: key, toFile: path, reading: reading)
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
        try cache.withFile(forKey: whole(key), reading) { (file, entry) throws(CacheError) in
            try describingFile("write", "descriptor \(descriptor)") { () throws(Errno) in
                _ = try FileDescriptor.duplicate(descriptor).copyAll(from: file)
            }
            return entry
        }
    }

    /// Calls `body` with a descriptor open for reading, positioned at the start of the verified value.
    ///
    /// Inside `body` the value stays readable whatever happens to the entry; the descriptor is closed afterwards. Mapping
    /// the file into memory is safe, because objects never change. With ``ReadOptions/Source/memory`` every call is a miss.
    ///
    /// - Returns: the result of `body`; nil for a miss.
    /// - Throws: ``CacheError``, and the error of `body`.
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func withDescriptor<Result>(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        _ body: (Int32, CacheEntry) throws -> Result
    ) throws -> Result? {
        let result = try cache.withFile(forKey: whole(key), reading) {
            (file, entry) throws(CacheError) in
            Swift.Result { try body(file.rawValue, entry) }
        }
        return try result?.get()
    }

    /// Returns the value of `key` as a sequence of chunks, or nil for a miss.
    ///
    /// ```swift
    /// if let chunks = try await cache.chunks(forKey: "film") {
    ///     for try await chunk in chunks { try await connection.write(chunk) }
    /// }
    /// ```
    ///
    /// Needs memory for one chunk, regardless of the size of the value. The whole value is verified before this returns, and
    /// read a second time during iteration; it stays unchanged and readable whatever happens to the key meanwhile. Each
    /// chunk takes one system call, on a library thread. One descriptor is open until the last copy of the sequence is
    /// released. The sequence can be iterated several times.
    ///
    /// Iterating throws `CancellationError` if the task was cancelled, so that a part is never mistaken for the whole value,
    /// and ``CacheError`` if the file cannot be read any more.
    ///
    /// The memory tier is not searched; but a value from a remote store is kept there, as after any other read.
    ///
    /// - Parameters:
    ///   - key: any non-empty string.
    ///   - reading: whether a stale value is acceptable, and its maximum age. With ``ReadOptions/Source/memory`` every call
    ///     is a miss.
    ///   - size: the number of bytes in each chunk except the last; an empty value has no chunks.
    /// - Throws: ``CacheError``.
    public func chunks(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        size: Int = 256 * 1024
    ) async throws(CacheError) -> (some AsyncSequence<Data, any Error> & Sendable)? {
        guard size > 0 else {
            let message = "read a value in pieces of \(size) bytes: they can't be empty: use 1 or more"
            throw CacheError(.invalidArgument, message)
        }
        let (cache, key) = (cache, whole(key))
        // Verifying reads the whole value, which may take long.
        let value = try await offload(on: .lengthy) { () throws(CacheError) -> OpenValue? in
            let digest = try cache.settledDigest(ofKey: key)
            guard let hit = try cache.findFile(forKey: key, digest, reading) else { return nil }
            return OpenValue(hit, path: cache.path)
        }
        let chunks: ValueChunks? = value.map { ValueChunks(value: $0, size: size) }
        return chunks
    }
}
