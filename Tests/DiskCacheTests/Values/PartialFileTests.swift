// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

/// Values that are downloaded piece by piece into a file that becomes the object.
@Suite(.takesTurns) struct PartialFileTests {
    private let directory: TemporaryDirectory
    private let cache: SharedCache

    init() throws {
        directory = try TemporaryDirectory()
        cache = try SharedCache(at: directory.path + "/cache")
    }

    private var leftovers: [String] { directory.files(below: "cache/tmp") }

    /// Returns a partial file with these bytes and a note.
    private func partial(_ text: String) throws -> PartialFile {
        let partial = try #require(try cache.partialFile(forKey: "key"))
        #expect(partial.begin(noting: Array("note".utf8)))
        try partial.file.writeAll(Array(text.utf8).span)
        return partial
    }

    @Test func `the partial file becomes the object`() throws {
        let partial = try partial("value")
        let before = try partial.file.status().identity
        let entry = try cache.put(partial, forKey: "key", options: PutOptions(contentType: "text/plain"))
        #expect(try cache.get(forKey: "key")?.value == Data("value".utf8))
        #expect(entry.contentType == "text/plain" && entry.size == 5)
        let path = directory.path + "/cache/" + entry.path
        #expect(try FileStatus.of(path).identity == before)
        #expect(try FileStatus.of(path).permissions == 0o400)
        #expect(try FileDescriptor(opening: path, .readOnly).attribute("user.dcp") == nil)
        #expect(leftovers.isEmpty)
    }

    @Test func `an existing object with the same bytes stays`() throws {
        try cache.put(Data("value".utf8), forKey: "other")
        let size = try cache.directory.statistics().objectBytes
        _ = try cache.put(try partial("value"), forKey: "key", options: PutOptions())
        #expect(try cache.get(forKey: "key")?.value == Data("value".utf8))
        #expect(try cache.directory.statistics().objectBytes == size)
        #expect(leftovers.isEmpty)
    }

    @Test func `no download is continued after a restart of the machine`() throws {
        let partial = try partial("val")
        var note = try #require(try partial.file.attribute("user.dcp"))
        note[0] ^= 1
        try partial.file.setAttribute("user.dcp", to: note.span)
        #expect(partial.noted == nil)
        let state = try cache.partialState(forKey: "key")
        #expect(state?.length == 3 && state?.note == nil)
        try partial.clear()
        #expect(try partial.file.attribute("user.dcp") == nil)
    }

    @Test func `one download at a time has the partial file, and the next continues it`() throws {
        var first: PartialFile? = try partial("val")
        #expect(try cache.partialFile(forKey: "key") == nil)
        let state = try cache.partialState(forKey: "key")
        #expect(state?.length == 3 && state?.note == Array("note".utf8))
        withExtendedLifetime(first) {}
        first = nil
        let second = try #require(try cache.partialFile(forKey: "key"))
        #expect(try second.length() == 3 && second.noted == Array("note".utf8))
        try second.file.writeAll(Array("ue".utf8).span)
        _ = try cache.put(second, forKey: "key", options: PutOptions())
        #expect(try cache.get(forKey: "key")?.value == Data("value".utf8))
    }

    @Test func `collections that check the file do not block a download`() throws {
        try partial("val").letGo()
        let path = directory.path + "/cache/tmp/" + leftovers[0]
        let isOver = Locked(false)
        let refused = Locked(0)
        onThreads(2) { [cache] index in
            #expect(throws: Never.self) {
                if index == 0 {
                    defer { isOver.withLock { $0 = true } }
                    var options = CollectionOptions()
                    options.expiredOnly = true
                    for _ in 0..<50 {
                        try cache.directory.collect(options)
                        // A collection does the same.
                        for _ in 0..<100 {
                            let file = try FileDescriptor(opening: path, .readOnly)
                            _ = try file.tryLock(.shared)
                            file.unlock()
                        }
                    }
                } else {
                    while !isOver.withLock({ $0 }) {
                        let file = try cache.partialFile(forKey: "key")
                        if file == nil { refused.withLock { $0 += 1 } }
                        // Unlocks explicitly, because a child process of another test may inherit the descriptor briefly.
                        file?.letGo()
                    }
                }
            }
        }
        #expect(refused.withLock { $0 } == 0)
    }

    @Test func `a file refused by its digest is not stored`() throws {
        let partial = try partial("value")
        #expect(throws: CacheError.self) {
            try cache.put(partial, forKey: "key", options: PutOptions()) { (_) throws(CacheError) in
                throw CacheError(.invalidArgument, "no")
            }
        }
        #expect(try cache.get(forKey: "key") == nil)
        partial.discard()
        #expect(leftovers.isEmpty)
    }

    @Test(arguments: [false, true])
    func `a partial file with a future modification time is removed`(isWhole: Bool)
        throws
    {
        try partial("val").letGo()
        let path = directory.path + "/cache/tmp/" + leftovers[0]
        let moment = Date(timeIntervalSinceNow: isWhole ? 30 : 7200)
        try FileManager.default.setAttributes([.modificationDate: moment], ofItemAtPath: path)
        var options = CollectionOptions()
        options.expiredOnly = !isWhole
        try cache.directory.collect(options)
        #expect(leftovers.isEmpty)
    }

    @Test func `a sweep of expired values keeps a partial file, and a complete collection deletes it`() throws
    {
        var partial: PartialFile? = try partial("val")
        try cache.directory.collect()
        #expect(leftovers.count == 1, "somebody has it")
        withExtendedLifetime(partial) {}
        partial = nil
        var options = CollectionOptions()
        options.expiredOnly = true
        try cache.directory.collect(options)
        #expect(leftovers.count == 1)
        #expect(try cache.partialFile(forKey: "key")?.length() == 3)
        try cache.directory.collect()
        #expect(leftovers.isEmpty)
    }

    @Test func `renew replaces the options without the bytes, but only of the entry seen`() throws {
        let soft = PutOptions(expires: .expired, staleFor: .seconds(60))
        try cache.put(Data("a".utf8), forKey: "key", options: soft)
        let seen = try #require(try cache.entry(forKey: "key", reading: ReadOptions(acceptsStale: true)))
        let terms = PutOptions(expires: .seconds(60), tags: ["t"])
        let renewed = try cache.renew(seen, forKey: "key", options: terms)
        #expect(renewed?.tags == ["t"])
        #expect(try cache.get(forKey: "key")?.value == Data("a".utf8))
        try cache.put(Data("b".utf8), forKey: "key")
        #expect(try cache.renew(seen, forKey: "key", options: PutOptions()) == nil)
        #expect(try cache.get(forKey: "key")?.value == Data("b".utf8))
    }
}
