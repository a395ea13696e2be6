// SPDX-License-Identifier: Apache-2.0

import Platform

@testable import CacheStore

/// Tests of puts at a limit.
protocol RoomSuite {
    var fixture: StoreFixture { get }
    var store: Store { get }
}

extension RoomSuite {
    func store(patience: Duration) throws -> Store {
        var options = StoreOptions()
        options.roomPatience = patience
        return try Store(at: fixture.path, options: options)
    }

    /// Stores a value of `count` bytes that is unique to the key.
    func put(_ key: String, _ count: Int = 4096, in store: Store, at time: Timestamp = .now) throws {
        let bytes = Array("\(key) ".utf8) + [UInt8](repeating: 7, count: max(0, count - key.utf8.count - 1))
        let record = Record(content: Content(of: bytes.span), created: time)
        try store.put(bytes.span, for: Digest(ofKey: key), record)
    }

    func limit(_ change: (inout DirectoryConfiguration) -> Void) throws {
        try store.configure { (configuration) throws(CacheError) in change(&configuration) }
    }

    /// Limits the size to `count` values of a block each, plus the overhead of the directory.
    func limitToBlocks(_ count: Int64) throws {
        let size = store.overhead + count * store.directory.fileSystem.blockSize
        try limit { $0.limits.maximumSize = ByteCount(size) }
    }

    func error(_ body: () throws -> Void) -> CacheError? {
        do {
            try body()
            return nil
        } catch {
            return error as? CacheError
        }
    }
}
