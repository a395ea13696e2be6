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
}
