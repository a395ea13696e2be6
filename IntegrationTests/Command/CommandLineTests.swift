// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of the built command as users and scripts run it.
@Suite(.takesTurns) struct CommandLineTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    func put(_ key: String, _ value: String, _ options: String...) throws {
        let run = try tool.run(["put"] + options + ["--", key], input: Data(value.utf8))
        try #require(run.status == 0, "\(run.error)")
    }

    // MARK: Files

    @Test func `a put creates one object named by the SHA-256 of the value`() throws {
        try put("k", "hello\n")
        let objects = tool.files("objects")
        #expect(objects.count == 1)
        let sum = try tool.shell("sha256sum < \"$DISKCACHE_DIR/objects/\(objects[0])\"").output.prefix(64)
        #expect(objects[0] == "\(sum.prefix(2))/\(sum)")
    }

    @Test func `an entry's name is the SHA-256 of its key`() throws {
        try put("user:1/thumb", "x")
        let sum = try tool.shell("printf %s user:1/thumb | sha256sum").output.prefix(64)
        #expect(tool.files("entries") == ["\(sum.prefix(2))/\(sum)"])
    }

    @Test func `the record is the attribute user.dc, and takes no block on ext4 for a key of 16 bytes`()
        throws
    {
        try put("0123456789abcdef", "x", "--ttl", "7d")
        let entry = "\(tool.directory)/entries/\(try #require(tool.files("entries").first))"
        let names = try tool.shell("python3 -c 'import os, sys; print(os.listxattr(sys.argv[1]))' '\(entry)'")
        try #require(names.status == 0, "python3 is needed to look at attributes: \(names.error)")
        guard try tool.shell("stat -f -c %T '\(entry)'").lines == ["ext2/ext3"] else { return }
        #expect(names.output == "['user.dc']\n")
        #expect(try tool.shell("stat -c '%b %s' '\(entry)'").output == "0 0\n")
    }

    @Test func `two keys with the same bytes share one object`() throws {
        try put("a", "same")
        try put("b", "same")
        #expect(tool.files("entries").count == 2)
        #expect(tool.files("objects").count == 1)
    }

    @Test func `after an overwrite gc removes the old object`() throws {
        try put("k", "old")
        let old = tool.files("objects")
        try put("k", "new")
        #expect(tool.files("objects").count == 2)
        let gc = try tool.run("gc")
        #expect(gc.status == 0)
        #expect(gc.output.contains("no key"))
        #expect(Set(tool.files("objects")).isDisjoint(with: old))
        #expect(try tool.run("get", "k").output == "new")
    }

    // MARK: Expiration

    @Test func `after its TTL a value is a miss, and gc reports its removal and its bytes`() throws {
        try put("k", "hello", "--ttl", "1h")
        #expect(try tool.run("get", "k").status == 0)
        try put("k", "hello", "--ttl", "1ms")
        try waitUntil("it expires") { try tool.run("get", "k").status == 1 }
        let miss = try tool.run("get", "k")
        #expect(miss.status == 1 && miss.outputData.isEmpty && miss.errorData.isEmpty)
        let report = try json(tool.run("gc", "--json"))
        let expired = try #require((report["removed"] as? [String: Any])?["expired"] as? [String: Any])
        #expect(expired["count"] as? Int == 1)
        #expect((expired["bytes"] as? Int ?? 0) > 0)
        #expect(report["removedBytes"] as? Int == expired["bytes"] as? Int)
        #expect(tool.files("objects").isEmpty && tool.files("entries").isEmpty)
    }

    @Test func `an expiration date is kept to the second, whatever its time zone`() throws {
        try put("k", "x", "--expires-at", "2100-01-01T02:00:00+02:00")
        #expect(try json(tool.run("info", "k", "--json"))["expires"] as? String == "2100-01-01T00:00:00.000Z")
    }

    @Test func `a ttl of a week is a week`() throws {
        try put("k", "x", "--ttl", "7d")
        let info = try json(tool.run("info", "k", "--json"))
        let created = try date(info["created"])
        #expect(try date(info["expires"]).timeIntervalSince(created) == 7 * 86400)
    }

    @Test func `a value that expired at once is returned by get --stale`() throws {
        try put("k", "x", "--ttl", "0", "--stale", "1h")
        #expect(try tool.run("get", "k").status == 1)
        #expect(try tool.run("info", "k").status == 1)
        #expect(try tool.run("get", "k", "--stale").output == "x")
        #expect(try tool.run("info", "k", "--stale").status == 0)
    }

    @Test func `touch replaces the expiration, keeps the tags, and fails for an absent key`() throws {
        try put("k", "x", "--ttl", "1h", "--tag", "t")
        #expect(try tool.run("touch", "k", "--ttl", "never").status == 0)
        let info = try json(tool.run("info", "k", "--json"))
        #expect(info["expires"] == nil)
        #expect(info["tags"] as? [String] == ["t"])
        #expect(try tool.run("touch", "k").status == 0)
        #expect(try tool.run("touch", "other").status == 1)
    }

    @Test func `a softly expired value is returned by get --stale`() throws {
        try put("never", "1", "--stale", "1h")
        try put("soon", "2", "--ttl", "1h")
        #expect(try tool.run("touch", "--soft", "never").status == 0)
        #expect(try tool.run("touch", "--soft=1h", "soon").status == 0)
        for (key, value) in [("never", "1"), ("soon", "2")] {
            #expect(try tool.run("get", key).status == 1)
            #expect(try tool.run("get", key, "--stale").output == value)
        }
        #expect(try tool.run("touch", "--soft", "other").status == 1)
    }

    @Test func `touch --soft expires all values with a tag or a prefix at once, and no others`() throws {
        try put("a/1", "1", "--tag", "x", "--stale", "1h")
        try put("a/2", "2", "--stale", "1h")
        try put("b/1", "3", "--stale", "1h")
        #expect(try tool.run("touch", "--soft", "--tag", "x").status == 0)
        #expect(try tool.run("ls", "--sort", "key").lines == ["a/2", "b/1"])
        #expect(try tool.run("touch", "--soft=2h", "--prefix", "a/").status == 0)
        #expect(try tool.run("ls").lines == ["b/1"])
        for (key, value) in [("a/1", "1"), ("a/2", "2")] {
            #expect(try tool.run("get", "--stale", key).output == value)
        }
    }

    // MARK: Values

    @Test func `an empty value is a value`() throws {
        try put("k", "")
        let run = try tool.run("get", "k")
        #expect(run.status == 0 && run.outputData.isEmpty)
    }

    @Test func `values are returned byte for byte`() throws {
        let bytes = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) })
        #expect(try tool.run("put", "k", input: bytes).status == 0)
        #expect(try tool.run("get", "k").outputData == bytes)
        #expect(try tool.shell("\"$TOOL\" get k | cat").outputData == bytes)
    }

    @Test func `put reads its value from a file, and get -o writes it to one`() throws {
        makeFile(tool.path("in"), "from a file")
        #expect(try tool.run("put", "k", tool.path("in")).status == 0)
        makeFile(tool.path("out"), "before")
        #expect(try tool.run("get", "k", "-o", tool.path("out")).status == 0)
        #expect(try String(contentsOfFile: tool.path("out"), encoding: .utf8) == "from a file")
        #expect(try tool.run("get", "other", "-o", tool.path("out")).status == 1)
        #expect(try String(contentsOfFile: tool.path("out"), encoding: .utf8) == "from a file")
    }

    @Test func `put --if-absent keeps an existing value`() throws {
        #expect(try tool.run("put", "k", "--if-absent", input: Data("1".utf8)).status == 0)
        let second = try tool.run("put", "k", "--if-absent", "--json", input: Data("2".utf8))
        #expect(second.status == 1 && second.outputData.isEmpty && second.errorData.isEmpty)
        #expect(try tool.run("get", "k").output == "1")
    }

    @Test func `put --if-absent succeeds although the value has expired at once`() throws {
        let run = try tool.run("put", "k", "--if-absent", "--ttl", "0", "--json", input: Data("1".utf8))
        #expect(run.status == 0 && run.outputData.isEmpty && run.errorData.isEmpty)
    }

    @Test func `incr counts although its key is the only one that the limit allows`() throws {
        #expect(try tool.run("config", "set", "max-entries", "1").status == 0)
        let counts = try (1...5).map { _ in try tool.run("incr", "a").output }
        #expect(counts == ["1\n", "2\n", "3\n", "4\n", "5\n"])
    }

    @Test func `has reports whether get would find a value, and prints nothing`() throws {
        try put("k", "1")
        try put("old", "2", "--ttl", "0", "--stale", "1h")
        for (key, status) in [("k", 0), ("old", 1), ("other", 1)] as [(String, Int32)] {
            let run = try tool.run("has", key)
            #expect(run.status == status && run.outputData.isEmpty && run.errorData.isEmpty)
        }
    }

    @Test func `dir prints the directory that all other commands use`() throws {
        #expect(try tool.run("dir").output == tool.directory + "\n")
        #expect(try tool.run("--dir", "/a/b/", "dir").output == "/a/b\n")
        #expect(try tool.shell("env -u DISKCACHE_DIR \"$TOOL\" dir").output.hasSuffix("/.cache/diskcache\n"))
        #expect(!FileManager.default.fileExists(atPath: tool.directory))
        // Unescaped, for `cd "$(diskcache dir)"`.
        #expect(try tool.run("-d", "/a\u{1B}b", "dir").output == "/a\u{1B}b\n")
    }

    @Test func `put reports what it stored`() throws {
        let run = try tool.run(
            "put",
            "k",
            "--json",
            "--etag",
            "\"e\"",
            "--meta",
            "a=b=c",
            input: Data("hello".utf8)
        )
        let report = try json(run)
        #expect(report["key"] as? String == "k")
        #expect(report["size"] as? Int == 5)
        #expect(report["digest"] as? String == Digest(of: Data("hello".utf8)).description)
        #expect(report["etag"] as? String == "\"e\"")
        #expect(report["metadata"] as? [String: String] == ["a": "b=c"])
        #expect(report["expires"] == nil)
    }

    // MARK: Removing

    @Test func `rm removes keys and reports whether any of them existed`() throws {
        try put("a", "1")
        #expect(try tool.run("rm", "a", "b").status == 0)
        #expect(try tool.run("get", "a").status == 1)
        #expect(try tool.run("rm", "a", "b").status == 1)
    }

    @Test func `rm --tag removes only the values with the tag`() throws {
        try put("a", "1", "--tag", "x", "--tag", "y")
        try put("b", "2", "--tag", "y")
        try put("c", "3")
        #expect(try tool.run("rm", "--tag", "x", "--json").output == "{\"removed\":1}\n")
        #expect(try tool.run("ls", "--sort", "key").lines == ["b", "c"])
        // The command does not check whether any value has the tag.
        #expect(try tool.run("rm", "--tag", "x").status == 0)
    }

    @Test func `clear empties the directory only with --yes`() throws {
        try put("a", "1")
        let refused = try tool.run("clear")
        #expect(refused.status == 64 && refused.error.contains("--yes"))
        #expect(try tool.run("get", "a").status == 0)
        #expect(try tool.run("clear", "--yes").output.hasPrefix("removed 1 key, 1 value, "))
        #expect(tool.files("objects").isEmpty && tool.files("entries").isEmpty)
        #expect(try tool.run("clear", "--yes", "--json").output == "{\"removed\":0,\"removedBytes\":0}\n")
    }

    @Test func `clear reports what it would remove before it asks, and accepts no as an answer`() throws {
        try put("a", "1")
        try put("b", "1")
        let run = try tool.shell(
            "for answer in n y; do echo $answer | script -qec \"'$TOOL' clear\" /dev/null; echo $?; done"
        )
        let text = run.output.replacingOccurrences(of: "\r", with: "")
        let question = "Remove everything in \(tool.directory): 2 keys, 1 value, "
        #expect(text.components(separatedBy: question).count == 3, "\(text)\(run.error)")
        #expect(text.contains("? [y/N] ") && text.contains("removed 2 keys, 1 value, "), "\(text)")
        #expect(text.split(separator: "\n").last == "0", "\(text)")
        #expect(tool.files("entries").isEmpty)
    }
}

/// Returns the JSON object that a command printed.
func json(_ run: Tool.Run) throws -> [String: Any] {
    try #require(run.outputData.last == UInt8(ascii: "\n"), "\(run.error)")
    return try #require(try JSONSerialization.jsonObject(with: run.outputData) as? [String: Any])
}

/// Parses a time in the format of the commands.
func date(_ text: Any?) throws -> Date {
    try Date(
        #require(text as? String),
        strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    )
}
