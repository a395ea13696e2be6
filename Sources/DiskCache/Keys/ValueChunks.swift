// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

/// A verified value file, open as long as an iteration may read it.
final class OpenValue: Sendable {
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
struct ValueChunks: AsyncSequence, Sendable {
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
