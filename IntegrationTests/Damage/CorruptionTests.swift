// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheCommand

/// Tests that files that are damaged behind the cache's back are misses, never wrong bytes.
@Suite(.takesTurns) struct CorruptionTests {
    private let place: TemporaryDirectory
    private let cache: SharedCache
    private let values = SelfProvingValues(size: 4096)

    init() throws {
        place = try TemporaryDirectory()
        cache = try SharedCache(at: place.path + "/cache")
    }

    enum Damage: String, CaseIterable, Sendable {
        case firstByte, lastByte, truncated, emptied, extended, zeroed, swapped
    }

    private func objectPath(_ data: Data) -> String {
        let name = Digest(of: data).description
        return "\(cache.path)/objects/\(name.prefix(2))/\(name)"
    }

    private func apply(_ damage: Damage, to data: Data, other: Data) throws {
        var bytes = data
        switch damage {
        case .firstByte: bytes[0] ^= 1
        case .lastByte: bytes[bytes.count - 1] ^= 0x80
        case .truncated: bytes.removeLast()
        case .emptied: bytes = Data()
        case .extended: bytes.append(0)
        case .zeroed: bytes.resetBytes(in: 1024..<2048)
        case .swapped: bytes = other
        }
        // In place: the file keeps its inode, as it does under a failing disk.
        let path = objectPath(data)
        #expect(chmod(path, 0o600) == 0)
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: bytes)
        try file.close()
    }

    @Test(arguments: [S_IFDIR, S_IFIFO, S_IFLNK])
    func `a put stores no record in a directory at an entry's path, and collections report and keep it`(
        kind: mode_t
    ) throws {
        let digest = Digest(ofKey: "key").description
        let folder = "\(cache.path)/entries/\(digest.prefix(2))"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let path = "\(folder)/\(digest)"
        switch kind {
        case S_IFDIR: #expect(mkdir(path, 0o700) == 0)
        case S_IFIFO: #expect(mkfifo(path, 0o600) == 0)
        default: #expect(symlink("/etc/hostname", path) == 0)
        }
        let report = try cache.directory.collect()
        #expect(report.unrecognised == ["entries/\(digest.prefix(2))/\(digest)"])
        if kind == S_IFDIR {
            #expect(throws: CacheError.self) { try cache.put("value", forKey: "key") }
            #expect(
                try cache.get(forKey: "key") == nil && SharedCache(at: cache.path).get(forKey: "key") == nil
            )
            #expect(try Directory(opening: folder).attribute("user.dc", of: RelativePath(digest)) == nil)
        } else {
            try cache.put("value", forKey: "key")
            #expect(try SharedCache(at: cache.path).get(forKey: "key")?.value == Data("value".utf8))
        }
    }

    @Test(arguments: Damage.allCases)
    func `a damaged object is a miss for every reader, and the next put repairs it`(damage: Damage) throws {
        let data = values.value(0)
        let other = values.value(1)
        try cache.put(data, forKey: "key")
        #expect(try cache.get(forKey: "key")?.value == data)
        try apply(damage, to: data, other: other)

        let reader = try SharedCache(at: cache.path)
        #expect(try reader.get(forKey: "key")?.value == nil)
        #expect(reader.directory.activity.corruptions == 1)
        try cache.put(data, forKey: "key")
        #expect(try reader.get(forKey: "key")?.value == data)
        #expect(try cache.directory.verify().isClean)
    }

    @Test
    func `a damaged object that is put again before a read never returns wrong bytes`() throws {
        let data = values.value(0)
        try cache.put(data, forKey: "key")
        try apply(.zeroed, to: data, other: data)
        // The object exists with the right length, so this put uses it: the damage must be detected later.
        try cache.put(data, forKey: "another")
        for key in ["key", "another"] {
            let found = try cache.get(forKey: key)?.value
            #expect(found == nil || found == data)
        }
    }
}
