// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct SharedCacheFilesTests {
    let fixture: CacheFixture
    let bytes = SeededGenerator.bytes(700_001, seed: 7)

    init() throws {
        fixture = try CacheFixture()
    }

    private func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        let path = fixture.directory.path + "/" + name
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test func `a file is put and copied out by path`() throws {
        let source = try file("in", bytes)
        let entry = try fixture.cache.put(contentsOfFile: source, forKey: "key")
        #expect(entry.size == bytes.count)
        #expect(entry.digest == Digest(of: Data(bytes)))
        #expect(try fixture.cache.get(forKey: "key")?.value == Data(bytes))
        let target = fixture.directory.path + "/out"
        #expect(try fixture.cache.copyValue(forKey: "key", toFile: target)?.size == bytes.count)
        #expect(try Data(contentsOf: URL(fileURLWithPath: target)) == Data(bytes))
        #expect(FileManager.default.contents(atPath: source) == Data(bytes))
    }

    @Test func `a file is put and copied out at a descriptor's offset`() throws {
        let source = try #require(FileHandle(forReadingAtPath: try file("in", bytes)))
        try source.seek(toOffset: 100)
        try fixture.cache.put(contentsOfDescriptor: source.fileDescriptor, forKey: "key")
        #expect(try fixture.cache.get(forKey: "key")?.value == Data(bytes[100...]))
        let path = try file("out", Array("head".utf8))
        let target = try #require(FileHandle(forWritingAtPath: path))
        try target.seekToEnd()
        try fixture.cache.copyValue(forKey: "key", toDescriptor: target.fileDescriptor)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("head".utf8) + Data(bytes[100...]))
    }

    @Test func `a value is put from a pipe and copied to a pipe`() throws {
        let input = Pipe()
        let small = Array(bytes.prefix(50_000))
        try input.fileHandleForWriting.write(contentsOf: small)
        try input.fileHandleForWriting.close()
        try fixture.cache.put(contentsOfDescriptor: input.fileHandleForReading.fileDescriptor, forKey: "key")
        let output = Pipe()
        try fixture.cache.copyValue(forKey: "key", toDescriptor: output.fileHandleForWriting.fileDescriptor)
        try output.fileHandleForWriting.close()
        #expect(try output.fileHandleForReading.readToEnd() == Data(small))
    }

    @Test func `a lifetime begins when a pipe's bytes have arrived`() throws {
        let input = Pipe()
        let clock = fixture.clock
        Thread.detachNewThread {
            usleep(50_000)
            clock.advance(by: 100)
            try? input.fileHandleForWriting.write(contentsOf: [1])
            try? input.fileHandleForWriting.close()
        }
        let entry = try fixture.cache.put(
            contentsOfDescriptor: input.fileHandleForReading.fileDescriptor,
            forKey: "key",
            options: PutOptions(expires: .seconds(10))
        )
        #expect(entry.created == fixture.clock.now)
        #expect(try fixture.cache.get(forKey: "key")?.value == Data([1]))
    }

    @Test func `a miss leaves the target file unchanged`() throws {
        let target = try file("out", [1, 2, 3])
        #expect(try fixture.cache.copyValue(forKey: "absent", toFile: target) == nil)
        #expect(FileManager.default.contents(atPath: target) == Data([1, 2, 3]))
    }

    @Test func `a damaged value is not copied to a file`() throws {
        try fixture.cache.put(Data(bytes), forKey: "key")
        let object = try #require(fixture.directory.files(below: "cache/objects").first)
        let path = fixture.cache.path + "/objects/" + object
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        let handle = try #require(FileHandle(forWritingAtPath: path))
        try handle.seek(toOffset: 650_000)
        try handle.write(contentsOf: [bytes[650_000] ^ 1])
        try handle.close()
        let target = fixture.directory.path + "/out"
        #expect(try fixture.cache.copyValue(forKey: "key", toFile: target) == nil)
        #expect(!FileManager.default.fileExists(atPath: target))
        #expect(fixture.cache.directory.activity.corruptions == 1)
    }

    @Test func `an unreadable source or an unwritable target is an inputOutput error`() throws {
        let absent = fixture.directory.path + "/absent"
        #expect(code { try fixture.cache.put(contentsOfFile: absent, forKey: "key") } == .inputOutput)
        #expect(
            code { try fixture.cache.put(contentsOfFile: fixture.directory.path, forKey: "key") }
                == .inputOutput
        )
        try fixture.cache.put("x", forKey: "key")
        let nowhere = fixture.directory.path + "/no/where"
        #expect(code { try fixture.cache.copyValue(forKey: "key", toFile: nowhere) } == .inputOutput)
        #expect(try fixture.text("key") == "x")
    }

    @Test func `a value stays readable by its descriptor after its removal`() throws {
        try fixture.cache.put(Data(bytes), forKey: "key")
        let read = try fixture.cache.withDescriptor(forKey: "key") { descriptor, entry in
            try fixture.cache.removeAll()
            #expect(entry.size == bytes.count)
            return try FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).readToEnd()
        }
        #expect(read == Data(bytes))
        #expect(try fixture.cache.withDescriptor(forKey: "key") { _, _ in true } == nil)
    }
}

@Suite(.takesTurns) struct SharedCacheAsyncTests {
    @Test func `asynchronous calls work in many concurrent tasks`() async throws {
        let fixture = try CacheFixture()
        let cache = try await SharedCache.open(at: fixture.cache.path)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for index in 0..<50 {
                group.addTask {
                    try await cache.put("value \(index)", forKey: "key \(index)")
                    let hit = try await cache.get(forKey: "key \(index)")
                    #expect(hit?.value == Data("value \(index)".utf8))
                }
            }
            try await group.waitForAll()
        }
        #expect(try await cache.blocking { try $0.directory.statistics().entries } == 50)
        try await cache.blocking { try $0.removeAll() }
        #expect(try await cache.entry(forKey: "key 1") == nil)
    }

    @Test func `asynchronous calls throw the same errors as blocking ones`() async throws {
        let fixture = try CacheFixture()
        await #expect(throws: CacheError.self) { try await fixture.cache.put("x", forKey: "") }
        try await fixture.cache.update(forKey: "key") { _ in .value(Data("1".utf8)) }
        let isStored = try await fixture.cache.blocking { try $0.putIfAbsent(Data(), forKey: "key") }
        #expect(!isStored)
    }
}
