// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests that no command prints control characters of keys, names and values to a terminal.
@Suite(.takesTurns) struct HostileTextTests {
    /// Text that sets a title and colours and clears the screen by ESC and C1, reverses the direction, and has line ends.
    static let hostile =
        "a\u{1B}]0;t\u{7}\u{1B}[31m\u{9B}2J\u{202E}b\u{2066}\u{200F}\u{61C}\u{2028}\u{2029}\r\nc\td\u{7F}\u{85}e"

    let tool: Tool
    /// The directory of a cache, whose path is hostile, too.
    let directory: String

    init() throws {
        tool = try Tool()
        directory = tool.path(Self.hostile) + "/cache"
    }

    private func run(_ words: String...) throws -> Tool.Run {
        try tool.run(["--dir", directory] + words, input: Data("x".utf8))
    }

    /// Returns whether a character controls a terminal or changes the appearance of the text around it.
    private static func mayNotLeave(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0A: false
        case 0..<0x20, 0x7F...0x9F, 0x61C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: true
        default: false
        }
    }

    private func expectHarmless(_ run: Tool.Run, _ words: [String]) {
        for (name, data) in [("output", run.outputData), ("error", run.errorData)] {
            let text = String(validating: data, as: UTF8.self)
            let bad = text?.unicodeScalars.filter(Self.mayNotLeave).map { String($0.value, radix: 16) }
            #expect(bad == [], "\(words.map(\.debugDescription)): \(name): \(String(describing: text))")
        }
        #expect(run.status < 128, "\(words)")
    }

    @Test func `no command prints control characters of keys, names or values`() throws {
        let hostile = Self.hostile
        #expect(try run("config", "set", "event-log", "1M").status == 0)
        let described = ["--tag", hostile, "--etag", hostile, "--meta", "\(hostile)=\(hostile)"]
        #expect(try tool.run(["-d", directory, "put"] + described + ["--", hostile]).status == 0)
        for part in ["objects", "entries"] {
            let shard = "\(directory)/\(part)/00"
            try FileManager.default.createDirectory(atPath: shard, withIntermediateDirectories: true)
            makeFile("\(shard)/\(hostile)")
        }
        let commands = [
            ["put", "--json"] + described + ["--", hostile], ["put", "--", hostile, "/none/" + hostile],
            ["put", "k", "--ttl", hostile], ["put", "k", "--expires-at", hostile],
            ["put", "k", "--meta", hostile],
            ["put", "k", "--meta", hostile + "=1", "--meta", hostile + "=2"],
            ["get", "--", hostile], ["get", "-o", "/none/" + hostile, "--", hostile],
            ["get", "--" + hostile],
            ["touch", "--", hostile], ["touch", "--ttl", hostile, "--", hostile],
            ["incr", "--", hostile], ["incr", "--", "k", hostile], ["lock", "--", hostile, hostile],
            ["info", "--", hostile], ["info", "--json", "--", hostile],
            ["ls"], ["ls", "--long"], ["ls", "--json"], ["ls", "--sort", "key"], ["ls", "--sort", hostile],
            ["complete", "--", "get", ""], ["complete", "--", "get", "a"],
            ["complete", "--", hostile, hostile],
            ["stats"], ["stats", "--json"], ["stats", "--quick"], ["stats", "--prometheus"],
            ["stats", "--watch", hostile],
            ["gc"], ["gc", "--json", "--verify"], ["gc", "--max-size", hostile], ["gc", "--last"],
            ["verify"], ["verify", "--json"], ["verify", "--sample", hostile],
            ["doctor"], ["doctor", "--json"], ["config", "get", hostile], ["config", hostile],
            ["config", "set", "max-size", hostile], ["config", "set", "min-free", hostile],
            ["run", "--", hostile], ["run", "--key", hostile, "--", "true"],
            ["run", "--env", hostile, "--", "true"],
            ["run", "--modtime", hostile + "/x", "--", "true"], ["run", "--ttl", hostile, "--", "true"],
            ["bench", "--workers", "1", "--operations", "1", "--size", "64"],
            ["bench", "--puts", hostile],
            ["completions", hostile], ["help", hostile], [hostile], ["--" + hostile],
            ["has", "--", hostile], ["get", "--digest", hostile], ["put", "k", "--digest", hostile],
            ["get", "--scope", hostile, "--", hostile], ["info", "--scope", hostile, "k"],
            ["ls", "--prefix", "a"], ["ls", "--glob", "a*"], ["ls", "--tag", hostile],
            ["info", "--prefix", "a"], ["info", "--prefix", "a", "--json"], ["stats", "--prefix", hostile],
            ["stats", "--prefix", hostile, "--json"], ["gc", "--dry-run", "--list", "--max-entries", "0"],
            ["gc", "--dry-run", "--list", "--max-entries", "0", "--json"], ["gc", "--prefix", hostile],
            ["touch", "--soft=" + hostile, "k"], ["touch", "--soft", "--tag", hostile + "x"],
            ["rm", "--prefix", hostile + "x"], ["rm", "--glob", hostile + "x"],
            ["rm", "--", hostile], ["rm", "--tag", hostile], ["info", "--", hostile],
            ["log"], ["log", "--json"], ["log", "--", hostile], ["clear"], ["clear", "--yes"],
        ]
        for words in commands {
            expectHarmless(try tool.run(["--dir", directory] + words, input: Data("x".utf8)), words)
        }
    }

    @Test func `no error about a directory or a setting prints control characters either`() throws {
        let hostile = Self.hostile
        #expect(try run("put", "k").status == 0)
        let file = tool.path(hostile + "/file")
        makeFile(file)
        makeFile("\(directory)/config.json", "{\"\(hostile.debugDescription.dropFirst(1).dropLast(1))\": 1}")
        let names = ["put", "get", "info", "rm", "touch", "log"].map { [$0, "k"] }
        let others = ["ls", "gc", "stats", "verify", "doctor", "config"].map { [$0] }
        for words in names + others + [["doctor", "--json"], ["run", "--", "true"]] {
            for place in [file, tool.path(hostile), tool.path("none/" + hostile), directory] {
                expectHarmless(try tool.run(["--dir", place] + words), words)
            }
        }
        let metadata = ["DISKCACHE_METADATA": hostile]
        expectHarmless(try tool.run("put", "k", environment: metadata), ["put"])
        let home = ["DISKCACHE_DIR": "", "HOME": hostile]
        expectHarmless(try tool.run("ls", environment: home), ["ls"])
    }

    @Test func `ls --null prints raw keys and skips a key with a NUL`() throws {
        let cache = try tool.cache()
        for key in ["good", "bad\0good", Self.hostile] { try cache.put("x", forKey: key) }
        try cache.put("x", forKey: String(repeating: "k", count: 2000))
        for order in [[], ["--sort", "key"]] {
            let run = try tool.run(["ls", "--null"] + order)
            #expect(run.status == 0)
            #expect(Set(run.output.split(separator: "\0").map(String.init)) == ["good", Self.hostile])
            #expect(
                run.error
                    == "diskcache: ls: skipped by --null: 1 key stored only as digests, 1 key with a NUL\n"
            )
        }
        // The command in the help text removes the listed keys and no others.
        _ = try tool.shell("\"$TOOL\" ls --null 2>/dev/null | xargs -0 \"$TOOL\" rm --")
        #expect(try cache.contains(forKey: "bad\0good"))
        #expect(try !cache.contains(forKey: "good"))
    }

    @Test func `emoji are printed unchanged`() throws {
        let keys = ["👩‍👩‍👧‍👦", "👁️‍🗨️", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "نامه‌ای"]
        for key in keys { #expect(try run("put", key).status == 0) }
        #expect(Set(try run("ls").lines) == Set(keys))
        let json = try run("ls", "--json").output
        #expect(keys.allSatisfy { json.contains("\"key\":\"\($0)\"") })
    }
}
