// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

extension SharedCache {
    /// The value of `key` as a sequence of pieces, or nil for a miss.
    ///
    /// ```swift
    /// if let chunks = try await cache.chunks(forKey: "film") {
    ///     for try await chunk in chunks { try await connection.write(chunk) }
    /// }
    /// ```
    ///
    /// Needs memory for one piece, whatever the size of the value. All of it is checked before this returns, and read
    /// once more as the sequence goes; it stays the same, and readable, whatever happens to the key meanwhile. Each
    /// piece takes one system call, on a thread of the library. One descriptor is open until the last copy of the
    /// sequence is gone. The sequence can be gone through several times.
    ///
    /// Iterating throws `CancellationError` if the task was cancelled, so that a part is never taken for the whole, and
    /// ``CacheError`` if the file can't be read any more.
    ///
    /// Memory is not asked, nor is the value kept there.
    ///
    /// - Parameters:
    ///   - key: any string but the empty one.
    ///   - reading: whether a stale value will do, and how old it may be. With ``ReadOptions/Source/memory`` it finds
    ///     nothing.
    ///   - size: bytes of each piece but the last one; an empty value has none.
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
        // As long as it takes to read the whole value.
        let value = try await offload(on: .lengthy) { () throws(CacheError) in
            try self.openValue(forKey: key, reading)
        }
        let chunks: ValueChunks? = value.map { ValueChunks(value: $0, size: size) }
        return chunks
    }

    private func openValue(forKey key: String, _ reading: ReadOptions) throws(CacheError) -> OpenValue? {
        guard let hit = try openFile(settledDigest(ofKey: key), reading) else { return nil }
        return OpenValue(hit, path: path)
    }
}

/// A value's file, checked and open as long as somebody may read it.
private final class OpenValue: Sendable {
    private let hit: StoreHit<FileDescriptor>
    /// The cache's directory, for errors.
    private let path: String

    init(_ hit: consuming StoreHit<FileDescriptor>, path: String) {
        self.hit = hit
        self.path = path
    }

    var length: Int { hit.record.content.length }

    /// Bytes that the value has.
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

/// The pieces of a value, read as they are asked for.
private struct ValueChunks: AsyncSequence, Sendable {
    typealias Element = Data

    let value: OpenValue
    /// Bytes of each piece but the last one.
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
