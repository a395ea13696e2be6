// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests that a dry run of `gc` predicts the real run.
@Suite(.takesTurns) struct RehearsalTests {
    private let tool: Tool
    private let cache: SharedCache

    init() throws {
        tool = try Tool()
        cache = try tool.cache { $0.janitor.joinsSession = false }
    }

    private func put(_ value: String, _ key: String, age: Double, expires: Expiration = .never) throws {
        let created = Date(timeIntervalSinceNow: -age)
        try tool.cache { $0.now = { created } }
            .put(value, forKey: key, options: PutOptions(expires: expires))
    }

    /// Creates something to remove for each reason, and values that several keys share.
    private func makeEverything() throws {
        for index in 0..<120 {
            let value = "value \(index / 2)" + String(repeating: "x", count: index / 2 % 5 * 3000)
            try put(value, "key \(index)", age: 1000 - Double(index))
        }
        for index in 0..<4 {
            try put("expired \(index)", "expired \(index)", age: 10, expires: .seconds(1))
            try put("old \(index)", "old \(index)", age: 90_000)
            try put("idle \(index)", "idle \(index)", age: 7000)
            try put("replaced \(index)", "key \(index)", age: 1)
        }
        let script = """
            cd "$DISKCACHE_DIR"
            rm "objects/$("$TOOL" info --json 'key 50' | sed 's/.*"digest":"\\(..\\)\\([0-9a-f]*\\)".*/\\1\\/\\1\\2/')"
            : > "entries/00/$(printf '%064d' 0)"
            printf leftover > tmp/put-dead
            """
        try FileManager.default.createDirectory(
            atPath: tool.directory + "/entries/00",
            withIntermediateDirectories: true
        )
        let made = try tool.shell(script)
        try #require(made.status == 0, "\(made.error)")
    }

    @Test func `a dry run reports the same numbers as the run that follows`() throws {
        try makeEverything()
        let usage = try tool.shell("du -s -B1 \"$DISKCACHE_DIR\" | cut -f1")
        let size = try #require(Int(usage.output.prefix { $0.isNumber }))
        let limits = [
            "--max-age", "1d", "--max-idle", "1h", "--max-entries", "100", "--max-size", "\(size - 300_000)",
        ]
        var rehearsal = try collect(limits + ["--dry-run"])
        var report = try collect(limits)
        for key in ["seconds", "isDryRun"] {
            rehearsal[key] = nil
            report[key] = nil
        }
        #expect(NSDictionary(dictionary: report) == NSDictionary(dictionary: rehearsal))
        let removed = try #require(report["removed"] as? [String: Any])
        let reasons = Set(RemovalReason.allCases.map(\.rawValue)).subtracting(["freeSpace", "cleared"])
        #expect(Set(removed.keys) == reasons)
        let again = try collect(limits)
        #expect((again["removed"] as? [String: Any])?.isEmpty == true, "\(again)")
    }

    private func collect(_ options: [String]) throws -> [String: Any] {
        let run = try tool.run(["gc", "--json"] + options)
        try #require(run.status == 0, "\(run.error)")
        let report = try JSONSerialization.jsonObject(with: run.outputData)
        return try #require(report as? [String: Any])
    }
}
