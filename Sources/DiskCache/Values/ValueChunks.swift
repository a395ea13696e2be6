// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

extension SharedCache {
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
    /// The memory tier is not read. A value from a remote store is kept in it, as after any other read.
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
        // Verifying reads the whole value, which may take long.
        let value = try await offload(on: .lengthy) { () throws(CacheError) in
            try self.openValue(forKey: key, reading)
        }
        let chunks: ValueChunks? = value.map { ValueChunks(value: $0, size: size) }
        return chunks
    }

    private func openValue(forKey key: String, _ reading: ReadOptions) throws(CacheError) -> OpenValue? {
        guard let hit = try findFile(forKey: key, settledDigest(ofKey: key), reading) else { return nil }
        return OpenValue(hit, path: path)
    }
}

/// A verified value file, open as long as an iteration may read it.
private final class OpenValue: Sendable {
    private let hit: StoreHit<FileDescriptor>
    /// The cache's directory, for errors.
    private let path: String

    init(_ hit: consuming StoreHit<FileDescriptor>, path: String) {
        self.hit = hit
        self.path = path
    }

    var length: Int { hit.record.content.length }

    /// Reads a range within the value.
    func read(_ count: Int, at offset: Int) throws(CacheError) -> Data {
        let data = try describing("read a value in", path) { () throws(Errno) in
            try hit.value.readData(count, at: offset)
        }
        guard let data else {
            let message =
                "read a value in \(path): its file was cut short: check the cache with `diskcache verify`"
            throw CacheError(.inputOutput, message, path: path)
        }
        return data
    }
}

/// The chunks of a value, read on demand.
private struct ValueChunks: AsyncSequence, Sendable {
    typealias Element = Data

    let value: OpenValue
    /// The number of bytes in each chunk except the last.
    let size: Int

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(chunks: self) }

    struct AsyncIterator: AsyncIteratorProtocol {
        let chunks: ValueChunks
        var offset = 0

        mutating func next() async throws -> Data? {
            let (value, start) = (chunks.value, offset)
            guard start < value.length else { return nil }
            try Task.checkCancellation()
            let count = Swift.min(chunks.size, value.length - start)
            let chunk = try await offload(on: .reading) { () throws(CacheError) in
                try value.read(count, at: start)
            }
            offset += chunk.count
            return chunk
        }
    }
}
