// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

@testable import diskcache_net

/// Lists of keys, and the transfer of values.
@Suite(.takesTurns) struct TransferTests {
    @Test func `a list of keys survives the round trip, and invalid keys are skipped`() {
        let keys = ["a", "b\nc", "ü", "-x"]
        #expect(KeyList.keys(in: KeyList.data(keys), for: .all) == keys)
        #expect(KeyList.keys(in: Data(), for: .all).isEmpty)
        #expect(KeyList.keys(in: Data([0, 0xFF, 0, 0x61]), for: .all) == ["a"])
    }

    @Test func `only requested keys are taken from a remote list`() {
        let list = KeyList.data(["thumbs/1", "http GET https://a/", "thumb", "diskcache:list all", "thumbs/"])
        #expect(KeyList.keys(in: list, for: .prefix("thumbs/")) == ["thumbs/1", "thumbs/"])
        // Compared by characters, e and the accent would be one character.
        #expect(KeyList.keys(in: KeyList.data(["te\u{301}"]), for: .prefix("te")) == ["te\u{301}"])
        #expect(KeyList.keys(in: list, for: .prefix("diskcache:")).isEmpty)
        #expect(KeyList.keys(in: list, for: .tagged("t")).count == 4, "the values tell")
    }

    @Test func `the key of a list names its selection, and lists contain no list`() throws {
        #expect(KeyList.key(for: .prefix("thumbs/")) == "diskcache:list prefix thumbs/")
        #expect(KeyList.key(for: .tagged("t")) == "diskcache:list tag t")
        let place = try TemporaryDirectory()
        let cache = try SharedCache(at: place.path + "/cache")
        for key in ["a/1", "a/2", "b"] { try cache.put(Data(), forKey: key) }
        try cache.put(Data(), forKey: KeyList.key(for: .prefix("a/")))
        #expect(try Set(KeyList.keys(of: .prefix("a/"), in: cache)) == ["a/1", "a/2"])
        #expect(try Set(KeyList.keys(of: .all, in: cache)) == ["a/1", "a/2", "b"])
    }

    @Test func `lists omit local-only entries and downloads`() throws {
        let place = try TemporaryDirectory()
        let cache = try SharedCache(at: place.path + "/cache")
        try cache.put(Data(), forKey: "a/1", options: PutOptions(tags: ["t"]))
        var options = PutOptions(tags: ["t"])
        options.staysHere = true
        try cache.put(Data(), forKey: "a/2?token=secret", options: options)
        try cache.downloads.put(Data(), forKey: "a/3?token=secret", options: PutOptions(tags: ["t"]))
        for selection in [KeySelection.all, .prefix("a/"), .tagged("t")] {
            #expect(try KeyList.keys(of: selection, in: cache) == ["a/1"])
        }
    }

    @Test func `each key is transferred once, and all outcomes are counted`() throws {
        let keys = (0..<100).map { "k\($0)" }
        let transfer = Transfer(verb: "pulling", count: 100, parallel: 4)
        let tally = try transfer.run(keys) { (key) throws(CacheError) -> Transfer.Outcome in
            switch Int(key.dropFirst()) ?? 0 {
            case 0..<10: .missing
            case 10..<30: .present
            default: .done(2)
            }
        }
        var expected = TransferTally()
        (expected.done, expected.bytes, expected.present, expected.missing) = (70, 140, 20, 10)
        #expect(tally == expected)
    }

    @Test func `an error of the cache ends the transfer`() {
        let failure = CacheError(.noSpace, "full")
        #expect(throws: failure) {
            let transfer = Transfer(verb: "pulling", count: 1, parallel: 1)
            _ = try transfer.run(["k"]) { (_) throws(CacheError) -> Transfer.Outcome in throw failure }
        }
    }

    @Test func `the progress line shows percentage, rate and remaining time`() {
        var tally = TransferTally()
        (tally.done, tally.bytes, tally.missing) = (400, 4 << 20, 100)
        #expect(
            tally.line("pushing", of: 1000, after: .milliseconds(500))
                == "pushing: 50 %, 500 keys, 4.0 MiB"
        )
        #expect(
            tally.line("pushing", of: 1000, after: .seconds(2))
                == "pushing: 50 %, 500 keys, 4.0 MiB, 2.0 MiB/s, 2s left"
        )
    }

    @Test func `the summary line shows the counts of all outcomes`() {
        var tally = TransferTally()
        (tally.done, tally.bytes) = (1, 5)
        #expect(tally.text("pushed") == "pushed 1 key, 5 B\n")
        (tally.missing, tally.waiting) = (2, 3)
        #expect(tally.text("pushed") == "pushed 1 key, 5 B; 2 missing; 3 waiting\n")
    }
}
