// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Full, read-only, without inodes, without extended attributes.
@Suite(.enabled(if: Mount.isAllowed, "mounting a file system needs root"), .takesTurns)
struct FileSystemTests {
    private func code(_ body: () throws -> Void) -> CacheError.Code? {
        do {
            try body()
            return nil
        } catch {
            return (error as? CacheError)?.code
        }
    }

    /// Puts until that fails; how many values were stored, and the error.
    private func fill(_ cache: SharedCache, size: Int) -> (stored: Int, code: CacheError.Code?) {
        for index in 0..<1000 {
            let failure = code {
                try cache.put(
                    Data(SeededGenerator.bytes(size, seed: UInt64(index))),
                    forKey: "key \(index)"
                )
            }
            if let failure { return (index, failure) }
        }
        return (1000, nil)
    }

    @Test(arguments: [CacheConfiguration.MetadataForm.automatic, .sidecar])
    func `on a full file system a put says so, and what was stored stays readable`(
        form: CacheConfiguration.MetadataForm
    ) throws {
        let mount = try Mount("tmpfs", options: "size=4m")
        var configuration = CacheConfiguration()
        configuration.metadataForm = form
        let cache = try SharedCache(at: mount.path + "/cache", configuration: configuration)
        let (stored, code) = fill(cache, size: 50_000)
        #expect(code == .noSpace)
        #expect(stored > 5)
        for index in 0..<stored {
            let expected = Data(SeededGenerator.bytes(50_000, seed: UInt64(index)))
            #expect(try cache.get("key \(index)")?.data == expected)
        }
        // A full disk keeps nobody from opening, collecting and storing again.
        let other = try SharedCache(at: mount.path + "/cache", configuration: configuration)
        let own = try #require(try other.totals()).usage.overheadBytes
        let left = try other.trim(to: ByteCount(own + 500 * 1024))
        #expect(left.objects.count > 0)
        try other.put("fits", forKey: "small")
        #expect(try other.get("small")?.data == Data("fits".utf8))
        #expect(try other.verify().isClean)
    }

    @Test func `without a free inode a put says so, and overwriting still works`() throws {
        let mount = try Mount("tmpfs", options: "size=10m,nr_inodes=250")
        let cache = try SharedCache(at: mount.path + "/cache")
        let (stored, code) = fill(cache, size: 100)
        #expect(code == .noSpace)
        #expect(stored > 3)
        #expect(try cache.get("key 0")?.data == Data(SeededGenerator.bytes(100, seed: 0)))
        try cache.put(Data(SeededGenerator.bytes(100, seed: 0)), forKey: "key 1")
        #expect(try cache.get("key 1")?.data == Data(SeededGenerator.bytes(100, seed: 0)))
        try cache.removeAll()
        try cache.put("x", forKey: "again")
    }

    @Test func `a read-only cache can be read, and a put says what is wrong`() throws {
        let mount = try Mount("tmpfs")
        try SharedCache(at: mount.path + "/cache").put("value", forKey: "key")
        try mount.remount("ro")
        let cache = try SharedCache(at: mount.path + "/cache")
        #expect(try cache.get("key")?.data == Data("value".utf8))
        #expect(code { try cache.put("new", forKey: "key") } == .readOnly)
        #expect(code { try cache.remove("key") } == .readOnly)
        #expect(code { _ = try SharedCache(at: mount.path + "/other") } == .readOnly)
        #expect(cache.activity.unnotedAccesses == 0)
        #expect(try cache.verify().isClean)
        let object = try #require(mount.directory.files(below: "mount/cache/objects").first)
        try mount.remount("rw")
        try FileManager.default.removeItem(atPath: mount.path + "/cache/objects/" + object)
        try mount.remount("ro")
        #expect(try cache.verify().danglingEntries.count == 1)
    }

    @Test func `without extended attributes records go to sidecars`() throws {
        let mount = try Mount("ramfs")
        let cache = try SharedCache(at: mount.path + "/cache")
        try cache.put("value", forKey: "key", expires: .days(1), attributes: EntryAttributes(tags: ["t"]))
        let hit = try #require(try cache.get("key"))
        #expect(hit.data == Data("value".utf8))
        #expect(hit.entry.attributes.tags == ["t"])
        try cache.put("other", forKey: "key")
        #expect(try cache.collectGarbage().removed[.orphan]?.count == 1)
        #expect(try cache.verify().isClean)
    }

    @Test func `a cache that is copied without its attributes has misses and no wrong bytes`() throws {
        let directory = try TemporaryDirectory()
        let original = try SharedCache(at: directory.path + "/cache")
        try original.put("value", forKey: "key")
        let mount = try Mount("ramfs")
        try FileManager.default.copyItem(atPath: directory.path + "/cache", toPath: mount.path + "/cache")
        let copy = try SharedCache(at: mount.path + "/cache")
        #expect(try copy.get("key") == nil)
        try copy.collectGarbage()
        try copy.put("value", forKey: "key")
        #expect(try copy.get("key")?.data == Data("value".utf8))
    }
}
