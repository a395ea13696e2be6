// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of the commands that report: their contents and formats.
@Suite(.takesTurns) struct CommandReportTests {
    let tool: Tool
    let cache: SharedCache

    init() throws {
        tool = try Tool()
        cache = try tool.cache()
    }

    // MARK: ls

    @Test func `ls prints each key on one line, whatever it contains`() throws {
        let keys = ["plain", "two\nlines", "tab\t", "back\\slash", "\u{1B}[2J", "ünï 🙂"]
        for key in keys { try cache.put("x", forKey: key) }
        let shown = ["plain", "two\\nlines", "tab\\t", "back\\\\slash", "\\x1b[2J", "ünï 🙂"]
        #expect(Set(try tool.run("ls").lines) == Set(shown))
        let raw = try tool.run("ls", "--null").output.split(separator: "\0").map(String.init)
        #expect(Set(raw) == Set(keys))
    }

    @Test func `raw keys can be passed to xargs`() throws {
        for key in ["a b", "c\nd", "e'f", "--dir=/elsewhere"] { try cache.put("x", forKey: key) }
        #expect(try tool.shell("\"$TOOL\" ls -0 | xargs -0 \"$TOOL\" rm --").status == 0)
        #expect(try tool.run("ls").outputData.isEmpty)
    }

    @Test func `a key that is not stored is shown by its digest`() throws {
        let key = String(repeating: "k", count: 1025)
        try cache.put("x", forKey: key)
        #expect(try tool.run("ls").output == "sha256:\(Digest(of: Data(key.utf8)))\n")
        #expect(try tool.run("ls", "--null").outputData.isEmpty)
    }

    @Test(arguments: [
        ("key", ["a", "b", "c"]), ("size", ["b", "c", "a"]), ("age", ["c", "b", "a"]),
        ("access", ["c", "b", "a"]), ("expires", ["a", "c", "b"]),
    ])
    func `ls sorts by each order, also reversed and with a limit`(order: String, keys: [String]) throws {
        for (key, value, days, age) in [("a", "1", 1, 1.0), ("b", "333", nil, 2), ("c", "22", 2, 3)] {
            let created = Date(timeIntervalSinceNow: -age * 1000)
            try tool.cache { $0.now = { created } }
                .put(value, forKey: key, options: PutOptions(expires: days.map { .days($0) } ?? .never))
        }
        #expect(try tool.run("ls", "--sort", order).lines == keys)
        #expect(try tool.run("ls", "--sort", order, "--reverse").lines == keys.reversed())
        #expect(try tool.run("ls", "--sort", order, "--limit", "2").lines == Array(keys.prefix(2)))
    }

    @Test func `ls --limit shortens an unsorted list`() throws {
        for key in ["a", "b", "c"] { try cache.put("x", forKey: key) }
        #expect(try tool.run("ls", "--limit", "2").lines.count == 2)
        #expect(try tool.run("ls", "--limit", "0").outputData.isEmpty)
    }

    @Test func `ls --json prints one object per line`() throws {
        for key in ["a", "b\n"] { try cache.put("xyz", forKey: key, options: PutOptions(expires: .days(1))) }
        let objects = try tool.run("ls", "--json").lines.map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(Set(objects.compactMap { $0["key"] as? String }) == ["a", "b\n"])
        #expect(objects.allSatisfy { $0["size"] as? Int == 3 && $0["expires"] is String })
    }

    @Test func `ls --long prints a heading and aligned columns`() throws {
        try cache.put("x", forKey: "k", options: PutOptions(expires: .never))
        let lines = try tool.run("ls", "--long").lines
        #expect(lines.count == 2)
        #expect(lines[0] == "      SIZE       AGE      USED      LEFT  KEY")
        #expect(lines[1].hasPrefix("       1 B "))
        #expect(lines[1].hasSuffix("     never  k"))
    }

    @Test func `expired values are not listed`() throws {
        try cache.put("x", forKey: "k", options: PutOptions(expires: .expired))
        #expect(try tool.run("ls").outputData.isEmpty)
    }

    // MARK: info, stats, verify, gc, doctor

    @Test func `info reports the paths of the object and the entry`() throws {
        try cache.put("hello", forKey: "k")
        let info = try json(tool.run("info", "k", "--json"))
        let object = try #require(info["objectPath"] as? String)
        #expect(try String(contentsOfFile: object, encoding: .utf8) == "hello")
        #expect(FileManager.default.fileExists(atPath: try #require(info["entryPath"] as? String)))
        #expect(try tool.run("info", "k").output.contains(object))
    }

    @Test func `stats counts entries, expired entries, objects and bytes`() throws {
        try cache.put("hello", forKey: "a")
        try cache.put("hello", forKey: "b")
        try cache.put("x", forKey: "c", options: PutOptions(expires: .expired))
        let stats = try json(tool.run("stats", "--json"))
        #expect(stats["entries"] as? Int == 3)
        #expect(stats["expiredEntries"] as? Int == 1)
        #expect(stats["objects"] as? Int == 2)
        #expect(stats["logicalBytes"] as? Int == 11)
        #expect(stats["path"] as? String == tool.directory)
    }

    @Test func `gc prints one line if there is nothing to do`() throws {
        try cache.put("hello", forKey: "a")
        let run = try tool.run("gc")
        #expect(run.status == 0 && run.errorData.isEmpty)
        #expect(run.lines.count == 1 && run.output.hasPrefix("nothing to do: 1 key, 1 value, "))
    }

    @Test func `gc prints the reasons and the remainder in aligned columns`() throws {
        for number in 0..<12 { try cache.put("value \(number)", forKey: "k\(number)") }
        let lines = try tool.run("gc", "--max-entries", "2").lines
        #expect(lines.first == "REMOVED   COUNT     BYTES")
        #expect(lines.contains("too many     10  40.0 KiB"))
        #expect(lines.last?.hasPrefix("left: 2 keys, 2 values, ") ?? false)
        #expect(Set(lines.dropLast().map(\.count)).count == 1)
    }

    @Test func `a dry run removes nothing`() throws {
        try cache.put("hello", forKey: "a")
        let run = try tool.run("gc", "--max-entries", "0", "--dry-run", "--json")
        #expect(try json(run)["isDryRun"] as? Bool == true)
        #expect(try (json(run)["removed"] as? [String: Any])?.keys.sorted() == ["entries"])
        #expect(try tool.run("get", "a").status == 0)
    }

    @Test func `gc --no-wait fails while another process holds the lock`() throws {
        try cache.put("hello", forKey: "a")
        #expect(try tool.run("gc").status == 0)
        let run = try tool.shell(
            "exec 9<>\"$DISKCACHE_DIR/locks/janitor\"; flock 9; \"$TOOL\" gc --no-wait 9>&-"
        )
        #expect(run.status == 75)
        #expect(run.error.hasPrefix("diskcache: ") && run.error.split(separator: "\n").count == 1)
    }

    @Test func `verify finds a flipped byte, and --repair removes the value`() throws {
        try cache.put("hello", forKey: "k")
        try cache.put("fine", forKey: "l")
        let digest = Digest(of: Data("hello".utf8)).description
        let object = "$DISKCACHE_DIR/objects/\(digest.prefix(2))/\(digest)"
        #expect(try tool.run("verify").status == 0)
        #expect(
            try tool.shell("chmod u+w \(object) && printf j | dd of=\(object) conv=notrunc status=none")
                .status == 0
        )
        let found = try tool.run("verify", "--json")
        #expect(found.status == 65)
        #expect(try json(found)["corruptObjects"] as? [String] == [digest])
        #expect(try tool.run("verify", "--repair").status == 65)
        #expect(try tool.run("verify").status == 0)
        #expect(try tool.run("get", "k").status == 1)
        #expect(try tool.run("get", "l").output == "fine")
    }

    @Test func `doctor finds that a private directory on a local disk is writable`() throws {
        let report = try json(tool.run("doctor", "--json"))
        let findings = try #require(report["findings"] as? [[String: Any]])
        #expect(findings.count >= 16)
        #expect(try #require(findings.first)["state"] as? String == "writable")
    }

    @Test func `doctor finds a directory that other users can access`() throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: tool.directory)
        let run = try tool.run("doctor")
        #expect(run.status == 78)
        #expect(run.output.contains("RISK"))
        #expect(run.output.contains("chmod go-rwx"))
    }

    // MARK: All commands

    static let commands = [
        "put", "get", "has", "rm", "clear", "touch", "incr", "ls", "info", "lock", "gc", "stats", "verify",
        "log", "doctor", "serve", "config", "dir", "bench", "completions",
    ]

    @Test(arguments: commands)
    func `every command has a help text`(command: String) throws {
        let help = try tool.run(command, "--help")
        #expect(help.status == 0)
        #expect(help.output.hasPrefix("Usage: diskcache \(command) "))
        #expect(help.lines.allSatisfy { !$0.hasSuffix(" ") })
        #expect(help.output.contains("Exit status:") && help.output.contains("Example"))
        #expect(help.lines.allSatisfy { $0.count <= 110 })
        #expect(try tool.run("help", command).output == help.output)
    }

    @Test func `the overview lists every command`() throws {
        let overview = try tool.run("--help").output
        for words in [["help"], ["help", "help"]] { #expect(try tool.run(words).output == overview) }
        #expect(Self.commands.allSatisfy { overview.contains("\n  \($0) ") })
    }
}
