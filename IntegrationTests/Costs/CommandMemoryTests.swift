// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests that values pass through the command in constant memory.
@Suite(.takesTurns) struct CommandMemoryTests {
    /// The length of the large value: four times the memory limit, or 32 times with `DISKCACHE_SOAK`.
    static let size = isSoak ? 1 << 30 : 128 << 20

    /// The memory limit of a run in KiB.
    ///
    /// The libraries alone take 12 MiB.
    static let limit = 32 * 1024

    static let canMeasure = FileManager.default.isExecutableFile(atPath: "/usr/bin/time")

    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    /// Runs a script and returns the peak memory of its `$TIMED` command in KiB.
    func peak(_ script: String) throws -> Int {
        let report = tool.path("peak")
        let run = try tool.shell("set -e -o pipefail; TIMED='/usr/bin/time -f %M -o \(report)'; \(script)")
        try #require(run.status == 0, "\(run.error)")
        let text = try String(contentsOfFile: report, encoding: .utf8)
        return try #require(Int(text.trimmingCharacters(in: .whitespacesAndNewlines)))
    }

    @Test(.enabled(if: canMeasure, "GNU time measures the memory"))
    func `a large value takes no more memory than a small one`() throws {
        let (original, copy) = (tool.path("original"), tool.path("copy"))
        _ = try tool.shell("head -c \(Self.size) /dev/urandom > '\(original)'")
        #expect(try peak("$TIMED \"$TOOL\" put file '\(original)'") < Self.limit)
        #expect(try peak("cat '\(original)' | $TIMED \"$TOOL\" put pipe") < Self.limit)
        #expect(try peak("$TIMED \"$TOOL\" get file -o '\(copy)'") < Self.limit)
        #expect(try tool.shell("cmp '\(original)' '\(copy)'").status == 0)
        #expect(try peak("$TIMED \"$TOOL\" get pipe | cmp - '\(original)'") < Self.limit)
        #expect(try peak("$TIMED \"$TOOL\" verify") < Self.limit)
    }

    @Test(.enabled(if: canMeasure, "GNU time measures the memory"))
    func `a long list takes no more memory than a short one`() throws {
        let cache = try tool.cache()
        let filler = String(repeating: "k", count: 900)
        try cache.put("x", forKey: "k")
        let short = try peak("$TIMED \"$TOOL\" ls > /dev/null")
        // 4 MB of keys.
        for number in 0..<4000 { try cache.put("x", forKey: "\(filler)\(number)") }
        let long = try peak("$TIMED \"$TOOL\" ls > /dev/null")
        #expect(long < short + 2048)
        #expect(try tool.shell("\"$TOOL\" ls | wc -l").output == "4001\n")
    }

    @Test(
        .enabled(if: canMeasure, "GNU time measures the memory"),
        .enabled(if: isSoak, "DISKCACHE_SOAK=1 has time for it")
    )
    func `a long list is sorted in bounded memory`() throws {
        let cache = try tool.cache()
        let options = PutOptions(metadata: ["filler": String(repeating: "m", count: 16_000)])
        // 80 MB of lines.
        for number in 0..<5000 { try cache.put("x", forKey: "k\(number)", options: options) }
        let list = tool.path("list")
        // The libraries and the encoder take 20 MiB, and sort(1) is limited to 32.
        let peak = try peak("$TIMED \"$TOOL\" ls --json --sort access > '\(list)'")
        #expect(peak < (32 + 12) * 1024)
        #expect(try tool.shell("wc -l < '\(list)'").output == "5000\n")
        #expect(try self.peak("$TIMED \"$TOOL\" ls --json --sort key --limit 10 > /dev/null") < 64 * 1024)
    }
}
