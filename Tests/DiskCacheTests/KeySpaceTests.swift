// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import TestSupport
import Testing

@testable import DiskCache

/// Downloads have a separate key space, whatever their keys' text.
@Suite(.takesTurns) struct KeySpaceTests {
    private let directory: TemporaryDirectory
    private let tier = FakeTier()
    private let cache: SharedCache
    private let downloads: SharedCache

    init() throws {
        directory = try TemporaryDirectory()
        cache = try tier.cache(in: directory.path + "/cache")
        downloads = cache.downloads
    }

    private func text(_ hit: CacheHit<Data>?) -> String? {
        hit.map { String(decoding: $0.value, as: UTF8.self) }
    }

    @Test func `a download's key digest is computed from bytes that no text has`() {
        let bytes: [UInt8] = [0xff] + "http\0http GET https://a/".utf8
        #expect(Digest(ofKey: "http GET https://a/", in: .downloads) == Digest(of: Data(bytes)))
        #expect(String(validating: bytes, as: UTF8.self) == nil)
        #expect(Digest(ofKey: "k", in: .callers) == Digest(ofKey: "k"))
        #expect(Set(KeySpace.allCases.map { Digest(ofKey: "k", in: $0) }).count == KeySpace.allCases.count)
    }

    @Test func `callers and downloads do not share entries under the same key text`() throws {
        // A key that fits in the inline head and a longer one.
        for key in ["k", String(repeating: "k", count: 100)] {
            try cache.put("ours", forKey: key)
            #expect(try downloads.get(forKey: key) == nil)
            #expect(try downloads.entry(forKey: key) == nil)
            try downloads.put("theirs", forKey: key)
            let (own, other) = (try cache.get(forKey: key), try downloads.get(forKey: key))
            #expect(text(own) == "ours" && own?.source == .memory)
            #expect(text(other) == "theirs" && other?.source == .memory)
            #expect(own?.entry.keyDigest == Digest(ofKey: key))
            #expect(other?.entry.keyDigest == Digest(ofKey: key, in: .downloads))
            // A new cache has an empty memory and reads from disk.
            let fresh = try SharedCache(at: directory.path + "/cache")
            #expect(try text(fresh.get(forKey: key)) == "ours")
            #expect(try text(fresh.downloads.get(forKey: key)) == "theirs")
            #expect(try downloads.remove(forKey: key))
            #expect(try cache.get(forKey: key)?.source == .memory, "the other one leaves it alone")
            try downloads.put("theirs", forKey: key)
            #expect(try cache.remove(forKey: key))
            #expect(try downloads.get(forKey: key)?.source == .memory)
        }
    }

    @Test func `a pending put is found only in its own key space`() throws {
        var configuration = CacheConfiguration()
        configuration.writing = .behind
        let cache = try SharedCache(at: directory.path + "/behind", configuration: configuration)
        let downloads = cache.downloads
        try cache.put("ours", forKey: "k")
        #expect(try downloads.get(forKey: "k") == nil)
        try downloads.put("theirs", forKey: "k")
        #expect(try text(cache.get(forKey: "k")) == "ours")
        #expect(try text(downloads.get(forKey: "k")) == "theirs")
        _ = cache.flush(within: nil)
        #expect(try text(cache.get(forKey: "k")) == "ours")
        #expect(try text(downloads.get(forKey: "k")) == "theirs")
    }

    @Test func `flights, locks and partial downloads of the key spaces are separate`() throws {
        let lock = try cache.flightLock(forKey: "k")
        let other = try downloads.flightLock(forKey: "k")
        #expect(try cache.attempt(lock) == .acquired)
        #expect(try downloads.attempt(other) == .acquired, "a caller's computation holds up no download")
        lock.release()
        other.release()
        _ = try #require(try downloads.partialFile(forKey: "k"))
        #expect(try cache.partialState(forKey: "k") == nil)
        // A caller's computation may request a download with the same key text.
        let value = cache.value(forKey: "k") { [downloads] in
            downloads.value(forKey: "k") { Data("theirs".utf8) } + Data(" and ours".utf8)
        }
        #expect(String(decoding: value, as: UTF8.self) == "theirs and ours")
    }

    @Test func `downloads are neither read from nor sent to remote servers`() throws {
        tier.set("forged", "k")
        #expect(try downloads.get(forKey: "k") == nil)
        let made = downloads.value(forKey: "k") { Data("made".utf8) }
        #expect(String(decoding: made, as: UTF8.self) == "made")
        #expect(tier.lookCount == 0)
        let live = try cache.withStore { (store, now) throws(CacheError) in
            try store.liveEntry(Digest(ofKey: "k", in: .downloads), now: now, allowingStale: false)
        }
        #expect(live?.record.staysHere == true)
        #expect(try text(cache.get(forKey: "k")) == "forged", "a caller's key is asked for")
    }

    @Test func `downloads are listed and removed by their key text`() throws {
        try cache.put("ours", forKey: "http GET https://a/")
        try downloads.put("theirs", forKey: "http GET https://a/")
        let listed = try cache.entries(.prefix("http GET ")).map { try $0.get() }
        #expect(listed.map(\.key) == ["http GET https://a/", "http GET https://a/"])
        #expect(Set(listed.map(\.keyDigest)).count == 2)
        #expect(cache.memory.keys == ["http GET https://a/"])
        try cache.removeAll(.prefix("http GET https://a/"))
        #expect(try downloads.get(forKey: "http GET https://a/") == nil)
        #expect(try cache.get(forKey: "http GET https://a/") == nil)
    }

    @Test func `a download's removal is logged with its key text`() throws {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        let cache = try SharedCache(at: directory.path + "/logged", configuration: configuration)
        try cache.directory.updateLimits { $0.eventLogSize = .mebibytes(1) }
        let downloads = cache.downloads
        try downloads.put("theirs", forKey: "http GET https://a/")
        try downloads.remove(forKey: "http GET https://a/")
        let logged = try #require(try cache.directory.removals())
        #expect(logged.map(\.key) == ["http GET https://a/"])
        #expect(logged.map(\.keyDigest) == [Digest(ofKey: "http GET https://a/", in: .downloads)])
    }
}
