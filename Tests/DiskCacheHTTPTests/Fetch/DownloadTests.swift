// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// The file that receives a body.
@Suite(.takesTurns) struct DownloadTests {
    private let directory: TemporaryDirectory
    private let cache: SharedCache

    init() throws {
        directory = try TemporaryDirectory()
        cache = try SharedCache(at: directory.path + "/cache")
    }

    private func download() throws -> Download {
        let partial = try #require(try cache.partialFile(forKey: "key"))
        #expect(partial.begin(noting: Array("note".utf8)))
        let terms = Download.Terms(
            policy: HTTPCachePolicy(),
            request: try HTTPRequest(FetchRequest("http://a/")),
            hasher: CredentialHasher(key: Data()),
            mostBytes: .max
        )
        return try Download(partial, in: cache, terms)
    }

    @Test func `an ended download frees its key, even while a thread still references it`() throws {
        let first = try download()
        #expect(try cache.partialFile(forKey: "key") == nil)
        first.abandon()
        let second = try download()
        second.release()
        #expect(try cache.partialFile(forKey: "key") != nil)
        withExtendedLifetime((first, second)) {}
    }

    @Test func `a download that has ended does not delete the file of another one`() throws {
        let first = try download()
        first.abandon()
        let second = try download()
        first.abandon(after: FetchError(.tooLarge, ""))
        first.release()
        #expect(try cache.partialState(forKey: "key") != nil)
        #expect(try cache.partialFile(forKey: "key") == nil, "the second one holds it")
        withExtendedLifetime((first, second)) {}
    }

    @Test func `a file that another program has replaced does not become a value`() throws {
        let partial = try #require(try cache.partialFile(forKey: "key"))
        try partial.file.writeAll(Array("value".utf8).span)
        let name = try #require(directory.files(below: "cache/tmp").first { $0.hasPrefix("part-") })
        let path = directory.path + "/cache/tmp/" + name
        try FileManager.default.removeItem(atPath: path)
        try Data("other".utf8).write(to: URL(filePath: path))
        #expect(throws: CacheError.self) {
            try cache.put(partial, forKey: "key", options: PutOptions())
        }
        #expect(try cache.get(forKey: "key") == nil)
        #expect(try Data(contentsOf: URL(filePath: path)) == Data("other".utf8))
    }
}
