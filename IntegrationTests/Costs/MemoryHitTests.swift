// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests that hits in memory make no system call, with a million of them.
@Suite(.serialized, .takesTurns)
struct MemoryHitTests {
    private let place: TemporaryDirectory

    init() throws {
        place = try TemporaryDirectory()
    }

    private static let hasTracer = isInstalled("strace")

    private static func isInstalled(_ program: String) -> Bool {
        (try? BuiltCommand.run("/usr/bin/env", ["sh", "-c", "command -v \(program)"]).status) == 0
    }

    /// Returns the total of `strace -c` for the given number of hits, including the start of the process.
    private func systemCalls(_ hits: Int) throws -> Int {
        let log = "\(place.path)/calls-\(hits)"
        let run = try BuiltCommand.run(
            "/usr/bin/env",
            [
                "strace", "-f", "-c", "-o", log, BuiltCommand.probes, "systemCalls",
                "\(place.path)/cache-\(hits)", "memory-hits", "\(hits)",
            ]
        )
        try #require(run.status == 0)
        // "100.00    0.001234           3       400        12 total"
        let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n")
        let total = try #require(lines.last { $0.hasSuffix(" total") })
        return try #require(total.split(separator: " ").compactMap { Int($0) }.max())
    }

    @Test(.enabled(if: hasTracer, "strace is not installed"))
    func `a million hits make no more system calls than a thousand`() throws {
        let few = try systemCalls(1000)
        let many = try systemCalls(1_001_000)
        // The difference allows for the memory of the allocator, and for work in the background.
        #expect(many - few < 1000, "\(few) and \(many)")
    }
}
