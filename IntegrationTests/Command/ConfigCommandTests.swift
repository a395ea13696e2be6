// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of `diskcache config`, and of the effect of limits on other commands.
@Suite(.takesTurns) struct ConfigCommandTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    @Test func `limits can be set, shown, read and unset`() throws {
        #expect(try tool.run("config").status == 78)
        for (name, value) in [
            ("max-size", "256M"), ("max-entries", "1000"), ("min-free", "2.5%"), ("max-age", "30d"),
            ("max-idle", "90s"), ("max-value-size", "1M"), ("event-log", "64K"),
        ] {
            let run = try tool.run("config", "set", name, value)
            #expect(run.status == 0 && run.outputData.isEmpty && run.errorData.isEmpty, "\(run.error)")
        }
        #expect(
            try tool.run("config").lines.map { $0.split(separator: " ", maxSplits: 1).map { $0.trimmed } }
                == [
                    ["max-size", "256.0 MiB"], ["max-entries", "1 000"], ["min-free", "2.5%"],
                    ["max-age", "30d"],
                    ["max-idle", "1m 30s"], ["max-value-size", "1.0 MiB"], ["event-log", "64.0 KiB"],
                    ["assume-local", "-"], ["share-memory", "-"],
                ]
        )
        #expect(try tool.run("config", "get", "max-size").output == "268435456\n")
        #expect(try tool.run("config", "get", "min-free").output == "2.5%\n")
        let json = """
            {"eventLog":65536,"maximumAge":2592000,"maximumEntries":1000,"maximumIdleTime":90,\
            "maximumSize":268435456,"maximumValueSize":1048576,"minimumFree":"2.5%"}

            """
        #expect(try tool.run("config", "--json").output == json)
        #expect(try tool.run("config", "unset", "max-idle").status == 0)
        let got = try tool.run("config", "get", "max-idle")
        #expect(got.status == 1 && got.outputData.isEmpty)
        // `set` accepts the output of `get`.
        for name in ["max-size", "min-free", "max-age", "max-value-size"] {
            let value = try tool.run("config", "get", name).lines[0]
            #expect(try tool.run("config", "set", name, value).status == 0)
            #expect(try tool.run("config", "get", name).lines == [value])
        }
        #expect(try tool.run("config", "set", "event-log", "0").status == 0)
        #expect(try tool.run("config", "get", "event-log").status == 1)
    }

    @Test func `spans are stored and printed as they were set`() throws {
        for (span, seconds) in [
            ("20d", "1728000s"), ("30d", "2592000s"), ("1.5h", "5400s"), ("500ms", "0.5s"),
        ] {
            #expect(try tool.run("config", "set", "max-age", span).status == 0)
            #expect(try tool.run("config", "get", "max-age").output == seconds + "\n")
            #expect(try tool.run("config", "--json").output == "{\"maximumAge\":\(seconds.dropLast())}\n")
        }
    }

    @Test(arguments: [
        ["set", "max-size", "2 GB"], ["set", "max-size", "-1"], ["set", "min-free", "101%"],
        ["set", "max-age", "soon"], ["set", "nothing", "1"], ["get", "nothing"], ["set", "max-size"], ["get"],
        ["put", "max-size", "1"], ["set", "max-entries", "0"], ["set", "max-size", "1M"], ["unset"],
        ["set", "max-size", "8P"], ["set", "min-free", "7900P"],
        ["set", "event-log", "20K"],
    ])
    func `invalid arguments are refused in one line, and no limit is set`(words: [String]) throws {
        let run = try tool.run(["config"] + words)
        #expect(run.status == 64)
        #expect(run.outputData.isEmpty && run.error.split(separator: "\n").count == 1, "\(run.error)")
        #expect(!FileManager.default.fileExists(atPath: tool.directory + "/config.json"))
    }

    @Test func `a damaged configuration fails config, gc and put, but neither get nor run`() throws {
        #expect(try tool.run("put", "key", input: Data("value".utf8)).status == 0)
        try Data("nonsense".utf8).write(to: URL(fileURLWithPath: tool.directory + "/config.json"))
        for command in [["config"], ["config", "set", "max-size", "1G"], ["gc"]] {
            let run = try tool.run(command)
            #expect(run.status == 78 && run.error.contains("config.json"), "\(run.error)")
        }
        #expect(try tool.run("get", "key").output == "value")
        let put = try tool.run("put", "other", input: Data("value".utf8))
        #expect(put.status == 78 && put.output.isEmpty && put.error.split(separator: "\n").count == 1)
        #expect(put.error.contains("delete it to have no limits") && put.error.contains("config.json"))
        #expect(try tool.run("get", "other").status == 1)
        let computed = try tool.run("run", "--key", "other", "--", "echo", "value")
        #expect(computed.status == 0 && computed.output == "value\n", "\(computed.error)")
        #expect(try tool.run("get", "other").status == 1)
        #expect(try tool.run("doctor").status == 78)
    }

    @Test func `assume-local can be set and unset, and a change of the limits keeps it`() throws {
        #expect(try tool.run("config", "set", "assume-local", "perhaps").status == 64)
        #expect(try tool.run("config", "set", "assume-local", "true").status == 0)
        #expect(try tool.run("config", "get", "assume-local").output == "true\n")
        try tool.cache().directory.updateLimits { $0 = CacheLimits(maximumSize: .mebibytes(100)) }
        #expect(try tool.run("config", "get", "assume-local").output == "true\n")
        #expect(try tool.run("config", "unset", "assume-local").status == 0)
        #expect(try tool.run("config", "get", "assume-local").status == 1)
        #expect(try tool.run("config", "get", "max-size").output == "104857600\n")
    }

    @Test func `a put that is too long, or without room, fails with an explanation`() throws {
        #expect(try tool.run("config", "set", "max-value-size", "10").status == 0)
        let long = try tool.run("put", "key", input: Data("eleven byte".utf8))
        #expect(long.status == 73 && long.error.contains("diskcache config set"), "\(long.error)")
        #expect(try tool.run("config", "set", "min-free", "100%", "--force").status == 0)
        let full = try tool.run("put", "key", input: Data("short".utf8))
        #expect(full.status == 75 && full.error.contains("nothing is left to evict"), "\(full.error)")
        #expect(full.error.contains("(min-free: a lower one)"), "\(full.error)")
    }

    @Test func `gc applies the limits of the directory, or other limits once`() throws {
        for index in 0..<20 {
            #expect(try tool.run("put", "key \(index)", input: Data("value \(index)".utf8)).status == 0)
        }
        #expect(try tool.run("config", "set", "max-entries", "10").status == 0)
        let rehearsal = try tool.run("gc", "--dry-run", "--json").output
        #expect(rehearsal.contains(#""entries":{"bytes":0,"count":10}"#), "\(rehearsal)")
        #expect(try tool.run("gc", "--max-entries", "15", "--json").output.contains(#""count":5"#))
        #expect(try tool.run("gc").output.contains("too many"))
        #expect(try tool.run("ls").lines.count == 10)
        let stats = try tool.run("stats", "--quick").output
        #expect(stats.contains("key limit") && stats.contains("100.0 % used"), "\(stats)")
        #expect(try tool.run("stats", "--prometheus").output.contains("diskcache_limit_entries{"))
    }

    @Test(arguments: [
        ["max-age", "0"], ["max-age", "0ms"], ["max-age", "0.00001ms"],
        ["max-idle", "0"], ["max-value-size", "0"],
        ["min-free", "100%"], ["min-free", "8000T"],
        ["max-size", "0"], ["max-entries", "0"],
    ])
    func `a limit that would keep no value is refused with a list of alternatives`(words: [String]) throws {
        #expect(try tool.run("put", "k").status == 0)
        let run = try tool.run(["config", "set"] + words)
        #expect(run.status == 64 && run.error.split(separator: "\n").count == 1)
        for way in ["`diskcache config unset \(words[0])`", "`diskcache clear`"] {
            #expect(run.error.contains(way), "\(run.error)")
        }
        // The message offers --force only if it works.
        let isRefusedAnyway = ["max-size", "max-entries"].contains(words[0])
        #expect(run.error.contains("--force") != isRefusedAnyway, "\(run.error)")
        if isRefusedAnyway { #expect(try tool.run(["config", "set", "--force"] + words).status == 64) }
        #expect(try tool.run("config", "--json").output == "{}\n")
        #expect(try tool.run("gc").status == 0)
        #expect(try tool.run("get", "k").status == 0)
    }

    @Test(arguments: [
        ["max-age", "0"], ["max-idle", "0"], ["max-value-size", "0"], ["min-free", "100%"],
        ["min-free", "8000T"],
    ])
    func `a limit that would keep no value can be set with --force`(words: [String]) throws {
        #expect(try tool.run(["config", "set", "--force"] + words).status == 0)
        #expect(try tool.run("config", "get", words[0]).lines.count == 1)
    }
}

extension Substring {
    fileprivate var trimmed: String { trimmingCharacters(in: .whitespaces) }
}
