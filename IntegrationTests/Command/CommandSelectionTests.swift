// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of selections by prefix, pattern or tag, and of scopes.
@Suite(.takesTurns) struct CommandSelectionTests {
    let tool: Tool
    let cache: SharedCache

    init() throws {
        tool = try Tool()
        cache = try tool.cache()
        for (key, tag) in [("a/1", "x"), ("a/2", "y"), ("a*", "y"), ("b/1", "x")] {
            try cache.put("value of \(key)", forKey: key, options: PutOptions(tags: [tag]))
        }
    }

    private var keys: [String] {
        get throws { try tool.run("ls", "--sort", "key").lines }
    }

    // MARK: Lists

    @Test(
        arguments: [
            (["--prefix", "a/"], ["a/1", "a/2"]), (["--prefix", "a/1"], ["a/1"]), (["--prefix", "c"], []),
            (["--glob", "a/?"], ["a/1", "a/2"]), (["--glob", "*1"], ["a/1", "b/1"]),
            (["--glob", "[!a]*"], ["b/1"]), (["--glob", "a\\*"], ["a*"]), (["--glob", "a"], []),
            (["--tag", "x"], ["a/1", "b/1"]), (["--tag", "z"], []),
        ] as [([String], [String])]
    )
    func `ls lists the selected keys`(options: [String], keys: [String]) throws {
        let run = try tool.run(["ls", "--sort", "key"] + options)
        #expect(run.status == 0 && run.errorData.isEmpty)
        #expect(run.lines == keys)
    }

    @Test func `info --prefix describes each key with the prefix`() throws {
        let run = try tool.run("info", "--prefix", "a/")
        #expect(run.status == 0)
        let blocks = run.output.components(separatedBy: "\n\n")
        #expect(blocks.count == 2 && blocks.allSatisfy { $0.hasPrefix("key ") })
        let names = blocks.compactMap { $0.split(separator: "\n").first?.split(separator: " ").last }
        #expect(Set(names) == ["a/1", "a/2"])
        let objects = try tool.run("info", "--prefix", "a/", "--json").lines.map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(Set(objects.compactMap { $0["key"] as? String }) == ["a/1", "a/2"])
        #expect(objects.allSatisfy { $0["state"] as? String == "hit" })
        #expect(try tool.run("info", "--prefix", "c").status == 1)
    }

    @Test func `stats --prefix counts only the entries with the prefix`() throws {
        try cache.put("x", forKey: "a/old", options: PutOptions(expires: .expired))
        let part = try json(tool.run("stats", "--prefix", "a/", "--json"))
        #expect(part["entries"] as? Int == 3 && part["expiredEntries"] as? Int == 1)
        #expect(part["logicalBytes"] as? Int == 2 * "value of a/1".utf8.count + 1)
        #expect(part["objects"] as? Int == 3 && part["prefix"] as? String == "a/" && part["totals"] == nil)
        let first = try #require(try tool.run("stats", "--prefix", "a/").lines.first)
        #expect(first.split(separator: " ") == ["keys", "3"])
    }

    // MARK: Removals

    @Test func `rm removes the selected keys and no others`() throws {
        #expect(try tool.run("rm", "--prefix", "a/", "--json").output == "{\"removed\":2}\n")
        #expect(try keys == ["a*", "b/1"])
        let run = try tool.run("rm", "--glob", "a\\*", "--json")
        #expect(run.status == 0 && run.output == "{\"removed\":1}\n")
        #expect(try keys == ["b/1"])
        #expect(try tool.run("rm", "--glob", "a*").status == 0)
        #expect(try tool.run("rm", "--tag", "x").status == 0)
        #expect(try keys.isEmpty)
        // A later put is not affected.
        try cache.put("x", forKey: "a/1", options: PutOptions(tags: ["x"]))
        #expect(try tool.run("get", "a/1").output == "x")
    }

    @Test func `rm takes keys, prefixes and tags in one call`() throws {
        #expect(try tool.run("rm", "a*", "--prefix", "b", "--prefix", "a/1", "--tag", "none").status == 0)
        #expect(try keys == ["a/2"])
    }

    @Test func `gc --prefix keeps the keys without the prefix`() throws {
        #expect(try tool.run("gc", "--prefix", "a/", "--max-age", "0").status == 0)
        #expect(try keys == ["a*", "b/1"])
    }

    @Test func `gc --list prints the removals, in a dry run and in a real run`() throws {
        try cache.put("x", forKey: "old\n", options: PutOptions(expires: .expired))
        let long = String(repeating: "k", count: 2000)
        try cache.put("x", forKey: long, options: PutOptions(expires: .expired))
        let expected = [
            "expired      old\\n", "expired      sha256:\(Digest(of: Data(long.utf8)))",
        ]
        for options in [["--dry-run"], []] {
            let run = try tool.run(["gc", "--list"] + options)
            #expect(run.status == 0)
            #expect(Set(run.lines.prefix(2)) == Set(expected), "\(run.output)")
            #expect(run.lines[2].hasPrefix(options.isEmpty ? "REMOVED" : "WOULD REMOVE"))
        }
        #expect(try tool.run("gc", "--list").lines.count == 1)
    }

    @Test func `gc and log report the same reason for a removal by prefix`() throws {
        #expect(try tool.run("config", "set", "event-log", "1M").status == 0)
        #expect(try tool.run("rm", "--prefix", "b/").status == 0)
        #expect(try tool.run("gc", "--list").lines.first == "cleared      b/1")
        #expect(try tool.run("log", "b/1").lines.last?.hasSuffix("  cleared      b/1") == true)
    }

    @Test func `gc --list --json prints one object per removal, and then the report`() throws {
        let run = try tool.run("gc", "--dry-run", "--list", "--max-entries", "0", "--json")
        let objects = try run.lines.map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(objects.count == 5)
        #expect(Set(objects.compactMap { $0["key"] as? String }) == ["a/1", "a/2", "a*", "b/1"])
        #expect(objects.dropLast().allSatisfy { $0["reason"] as? String == "entries" })
        #expect(objects.last?["isDryRun"] as? Bool == true)
        #expect(try keys.count == 4)
    }

    // MARK: Scopes

    @Test func `a scope is prepended to each key, from the option or from the environment`() throws {
        let scope = ["DISKCACHE_SCOPE": "s/"]
        let input = Data("x".utf8)
        #expect(try tool.run("put", "k", "--ttl", "1h", input: input, environment: scope).status == 0)
        #expect(try keys.last == "s/k")
        for words in [["get", "k"], ["has", "k"], ["touch", "k"], ["info", "k"]] {
            #expect(try tool.run(words).status == 1)
            #expect(try tool.run(words + ["--scope", "s/"]).status == 0)
            let quoted = words.joined(separator: " ")
            #expect(try tool.shell("DISKCACHE_SCOPE=s/ \"$TOOL\" \(quoted)").status == 0)
            #expect(try tool.shell("DISKCACHE_SCOPE=s/ \"$TOOL\" \(quoted) --scope ''").status == 1)
        }
        // Lists show whole keys.
        #expect(try tool.run("ls", "--prefix", "s/", environment: scope).lines == ["s/k"])
        #expect(try tool.run("rm", "a/1", environment: scope).status == 1)
        #expect(try tool.run("rm", "k", environment: scope).status == 0)
        #expect(try keys == ["a*", "a/1", "a/2", "b/1"])
    }

    @Test func `DISKCACHE_TTL sets the time to live unless the put does`() throws {
        func left(_ words: String..., ttl: String) throws -> TimeInterval? {
            let options = words.joined(separator: " ")
            let run = try tool.shell(
                "export DISKCACHE_TTL=\(ttl); \"$TOOL\" put k \(options) --json </dev/null"
            )
            try #require(run.status == 0, "\(run.error)")
            let stored = try json(run)
            guard let expires = stored["expires"] else { return nil }
            return try date(expires).timeIntervalSince(date(stored["created"]))
        }
        #expect(try left(ttl: "1h30m") == 5400)
        #expect(try left("--ttl", "7d", ttl: "1h30m") == 7 * 86400)
        #expect(try left("--ttl", "never", ttl: "1h30m") == nil)
        #expect(try left("--ttl", "1h", ttl: "soon") == 3600)
        #expect(try left(ttl: "") == nil)
        let wrong = try tool.run("put", "k", environment: ["DISKCACHE_TTL": "soon"])
        #expect(wrong.status == 64 && wrong.error.contains("$DISKCACHE_TTL: invalid time span 'soon'"))
        // The variable does not apply to touch.
        #expect(try tool.run("touch", "k", environment: ["DISKCACHE_TTL": "1h"]).status == 0)
        #expect(try json(tool.run("info", "k", "--json"))["expires"] == nil)
    }

    // MARK: Colours

    @Test func `output to a terminal has colours, except with NO_COLOR or TERM=dumb`() throws {
        func seen(_ variables: String, _ words: String) throws -> String {
            try tool.shell("env \(variables) script -qec \"'$TOOL' \(words)\" /dev/null </dev/null").output
        }
        let plain = try tool.run("ls", "--long").output
        let heading = String(try #require(plain.split(separator: "\n").first))
        #expect(!plain.contains("\u{1B}"))
        #expect(try seen("TERM=xterm", "ls --long").contains("\u{1B}[1m\(heading)\u{1B}[0m"))
        #expect(try seen("TERM=xterm", "verify").contains("\u{1B}[32msound:\u{1B}[0m 4 keys"))
        #expect(try seen("TERM=xterm", "nothing").contains("\u{1B}[31mdiskcache:\u{1B}[0m unknown command"))
        for variables in ["TERM=xterm NO_COLOR=1", "TERM=dumb"] {
            let text = try seen(variables, "ls --long")
            #expect(text.contains(heading) && !text.contains("\u{1B}[1m"))
            #expect(try seen(variables, "nothing").contains("diskcache: unknown command"))
        }
    }
}
