// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

@testable import CacheStore

/// Tests of `diskcache info`: why a key is a hit or a miss.
@Suite(.takesTurns) struct CommandInfoTests {
    let tool: Tool
    let cache: SharedCache

    init() throws {
        tool = try Tool()
        cache = try tool.cache()
    }

    private func status(_ words: String...) throws -> (line: String, exit: Int32) {
        let run = try tool.run(["info"] + words)
        let line = run.lines.first { $0.hasPrefix("status ") } ?? ""
        return (String(line.drop { $0 != " " }.drop { $0 == " " }), run.status)
    }

    @Test func `info reports a hit and its expiration`() throws {
        try cache.put("value", forKey: "k", options: PutOptions(expires: .days(7)))
        #expect(try status("k") == ("a hit", 0))
        #expect(try tool.run("info", "k").output.contains("(in 6d 23h)"))
        #expect(try json(tool.run("info", "k", "--json"))["state"] as? String == "hit")
    }

    @Test func `info reports why a key is a miss`() throws {
        let created = Date(timeIntervalSinceNow: -195.5)
        let former = try tool.cache { $0.now = { created } }
        try former.put("value", forKey: "old", options: PutOptions(expires: .seconds(10)))
        try former.put(
            "value",
            forKey: "stale",
            options: PutOptions(expires: .seconds(10), staleFor: .seconds(3600))
        )
        try cache.put("other", forKey: "gone")
        let object = cache.paths(of: try #require(try cache.entry(forKey: "gone"))).object
        try FileManager.default.removeItem(atPath: object)
        try cache.put("a third", forKey: "cut")
        let damaged = cache.paths(of: try #require(try cache.entry(forKey: "cut"))).object
        try FileManager.default.removeItem(atPath: damaged)
        makeFile(damaged, "a")
        #expect(
            try status("never") == ("a miss: never stored, or removed", 1)
        )
        #expect(try status("old").line.hasPrefix("a miss: expired 3m "))
        #expect(try status("stale").line.hasPrefix("a miss, except for get --stale: expired 3m "))
        #expect(try status("old").exit == 1 && status("stale").exit == 1)
        #expect(try status("stale", "--stale").exit == 0)
        #expect(try status("gone") == ("a miss: its value is gone; gc removes it", 1))
        #expect(try status("cut") == ("a miss: its value is damaged, 1 B long; a get removes it", 1))
        for (key, state) in [("stale", "stale"), ("gone", "valueGone"), ("cut", "damagedValue")] {
            #expect(try json(tool.run("info", key, "--json"))["state"] as? String == state)
        }
        let expired = try json(tool.run("info", "old", "--json"))
        #expect(expired["state"] as? String == "expired" && expired["size"] as? Int == 5)
        let absent = try json(tool.run("info", "never", "--json"))
        #expect(Set(absent.keys) == ["key", "keyDigest", "state"])
        #expect(absent["state"] as? String == "absent")
    }

    @Test func `info reports a value that was stored by a clock ahead, and how long it stays a miss`() throws
    {
        let created = Date(timeIntervalSinceNow: 3590)
        try tool.cache { $0.now = { created } }.put("value", forKey: "ahead")
        let status = try status("ahead")
        #expect(status.line.hasPrefix("a miss for 59m ") && status.line.contains("clock that stored it"))
        #expect(status.exit == 1 && !status.line.contains("gc removes it"))
    }

    @Test func `info reports from the event log which process removed a key, and why`() throws {
        let store = try Store(at: tool.directory)
        try store.configure { (configuration) throws(CacheError) in
            configuration.limits.eventLogSize = .mebibytes(1)
        }
        try cache.put("value", forKey: "k")
        var request = SweepRequest()
        request.limits.maximumEntries = 0
        _ = try Sweep.run(request, on: store, now: .now)
        let process = ProcessInfo.processInfo.processIdentifier
        let (line, exit) = try status("k")
        #expect(exit == 1 && line.hasPrefix("a miss: removed ") && line.hasSuffix(" \(process): too many"))
        let removal = try json(tool.run("info", "k", "--json"))["lastRemoval"] as? [String: Any]
        #expect(removal?["reason"] as? String == "entries" && removal?["process"] as? Int == Int(process))
        // The removal is not reported once the key has a value again.
        try cache.put("value", forKey: "k")
        #expect(try json(tool.run("info", "k", "--json"))["lastRemoval"] == nil)
    }

    @Test func `control characters of a key are escaped`() throws {
        try cache.put("value", forKey: "a\u{1B}[2Jb")
        #expect(try tool.run("info", "a\u{1B}[2Jb").lines[0].hasSuffix(" a\\x1b[2Jb"))
        #expect(try tool.run("info", "c\nd").lines[0].hasSuffix(" c\\nd"))
    }
}
