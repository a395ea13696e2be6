// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// Entries of callers never affect downloads, whatever their keys, values and metadata are.
@Suite(.takesTurns) struct KeptApartTests {
    private func place() throws -> FetchFixture {
        try FetchFixture { _ in WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("true".utf8)) }
    }

    /// All entries with their values.
    private func entries(in cache: SharedCache) async throws -> [(entry: CacheEntry, value: Data)] {
        try await cache.blocking { cache in
            try cache.entries().compactMap { result in
                let entry = try result.get()
                return FileManager.default.contents(atPath: "\(cache.path)/\(entry.path)").map { (entry, $0) }
            }
        }
    }

    @Test func `a caller's entry under a response's key is not used as a response`() async throws {
        let place = try place()
        _ = try await place.fetch()
        let stored = try await entries(in: place.cache)
        #expect(stored.count == 2, "the choice and the response")
        try await place.cache.blocking { (cache) throws(CacheError) in try cache.removeAll() }
        for (entry, value) in stored {
            let key = try #require(entry.key)
            let isResponse = entry.metadata[StoredResponse.metadataName] != nil
            var options = PutOptions(expires: .never)
            options.metadata = entry.metadata
            try await place.cache.put(isResponse ? Data("fake".utf8) : value, forKey: key, options: options)
        }
        let response = try await place.fetch()
        #expect(response.text == "true" && place.server.requests.count == 2)
        #expect(try await place.fetch().text == "true")
        for (entry, _) in stored {
            let own = try await place.cache.get(forKey: #require(entry.key))
            #expect(own?.entry.expires == nil, "what a caller has stored stays")
        }
    }

    @Test(arguments: ["stored", "alone", "tls\nnot this one", "\u{0}"])
    func `an entry under the key of a download does not affect it`(_ word: String) async throws {
        let place = try place()
        let key = "fetch http GET \(place.server.url("/"))"
        try await place.cache.put(Data(word.utf8), forKey: key)
        #expect(try await place.fetch().text == "true")
        // Not even if it is among the downloads' entries.
        let responses = place.http.context.responses
        try await place.cache.blocking { (cache) throws(CacheError) in try cache.removeAll() }
        try await responses.cache.put(Data(word.utf8), forKey: key)
        #expect(try await place.fetch().text == "true")
    }

    @Test func `a caller's entry under the name of the hasher key is not used as the key`() async throws {
        let place = try place()
        try await place.cache.put(Data(repeating: 0, count: 32), forKey: CredentialHasher.name)
        let request = HTTPRequest("GET", try #require(HTTPURL("https://a/")), ["Cookie": "a=b"])
        let hasher = await place.http.context.responses.hasher(for: request)
        #expect(hasher("a") != CredentialHasher(key: Data(repeating: 0, count: 32))("a"))
    }
}
