// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Tests of `diskcache log`.
@Suite(.takesTurns) struct CommandLogTests {
    let tool: Tool
    let store: Store

    init() throws {
        tool = try Tool()
        store = try Store(at: tool.directory)
        try store.configure { (configuration) throws(CacheError) in
            configuration.limits.eventLogSize = .mebibytes(1)
        }
    }

    private func put(_ key: String) throws {
        var record = Record(content: Content(of: [1].span), created: .now)
        record.key = key
        try store.put([1].span, for: Digest(ofKey: key), record)
    }

    private func fill() throws {
        for key in ["a\nb", "swept", "last"] { try put(key) }
        _ = try store.remove(Digest(ofKey: "a\nb"), now: .now, name: "a\nb")
        _ = try store.remove(Digest(ofKey: "last"), now: .now, name: "last")
        var request = SweepRequest()
        request.limits.maximumEntries = 0
        _ = try Sweep.run(request, on: store, now: .now)
    }

    @Test func `without an event log the command prints how to enable one`() throws {
        let run = try tool.run("log")
        #expect(run.status == 1 && run.outputData.isEmpty)
        #expect(run.error.contains("diskcache config set event-log"))
    }

    @Test func `removals are printed one per line, the newest last`() throws {
        try fill()
        let run = try tool.run("log")
        #expect(run.status == 0 && run.errorData.isEmpty)
        let ends = [
            "removed      a\\nb", "removed      last", "too many     sha256:\(Digest(ofKey: "swept"))",
        ]
        #expect(run.lines.count == 3)
        #expect(zip(run.lines, ends).allSatisfy { $0.hasSuffix("  " + $1) })
        #expect(try tool.run("log", "--limit", "2").lines == Array(run.lines.suffix(2)))
    }

    @Test func `log KEY prints the removals of the key, including those by gc`() throws {
        try fill()
        #expect(try tool.run("log", "swept").lines.first?.hasSuffix("too many     swept") == true)
        #expect(try tool.run("log", "swept").lines.count == 1)
        let missing = try tool.run("log", "never put")
        #expect(missing.status == 1 && missing.outputData.isEmpty && missing.errorData.isEmpty)
    }

    @Test func `JSON output is one object per line`() throws {
        try fill()
        let objects = try tool.run("log", "--json").lines.map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(objects.map { $0["reason"] as? String } == ["removed", "removed", "entries"])
        #expect(objects.map { $0["key"] as? String } == ["a\nb", "last", nil])
        #expect(objects[2]["keyDigest"] as? String == "\(Digest(ofKey: "swept"))")
        let process = Int(CurrentProcess.identifier)
        #expect(objects.allSatisfy { $0["process"] as? Int == process && $0["time"] is String })
    }

    @Test func `every process logs if the configuration of the directory enables the event log`() throws {
        #expect(try tool.run("config", "set", "event-log", "1M").status == 0)
        for key in ["a", "b"] { #expect(try tool.run("put", key, input: Data("value".utf8)).status == 0) }
        #expect(try tool.run("rm", "a").status == 0)
        #expect(try tool.run("gc", "--max-entries", "0").status == 0)
        #expect(try tool.run("log").lines.map { $0.split(separator: " ").count } == [4, 5])
        #expect(try tool.run("log", "a").lines[0].hasSuffix("  removed      a"))
        #expect(try tool.run("info", "b").lines[1].hasSuffix(": too many"))
        #expect(try tool.run("put", "a", input: Data("value".utf8)).status == 0)
        #expect(try tool.run("clear", "--yes").status == 0)
        #expect(try tool.run("log", "a").lines.last?.hasSuffix("  cleared      a") == true)
        #expect(try tool.run("config", "unset", "event-log").status == 0)
        #expect(try tool.run("put", "a", input: Data("value".utf8)).status == 0)
        #expect(try tool.run("rm", "a").status == 0)
        #expect(try tool.run("log", "a").lines.count == 2, "it can still be read")
    }
}
