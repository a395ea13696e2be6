// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of `doctor --bench` on a cache that is in use.
@Suite(.takesTurns) struct DoctorBenchTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
        let cache = try tool.cache()
        for number in 0..<20 { try cache.put("value \(number)", forKey: "key \(number)") }
        cache.close()
    }

    /// Returns the names of all files, and the inodes, sizes, modes and times of entries and objects.
    func listing() throws -> [String] {
        try tool.shell(
            """
            cd "$DISKCACHE_DIR" && find . | sort
            find entries objects -type f -printf '%p %i %s %m %A@ %C@\\n' | sort
            """
        ).lines
    }

    @Test func `doctor --bench measures every operation and leaves the cache unchanged`() throws {
        let before = try (listing(), json(tool.run("stats", "--json")))
        let run = try tool.run("doctor", "--bench", "--json")
        #expect(run.status == 0, "\(run.error)")
        let rows = try #require(try json(run)["bench"] as? [[String: Any]])
        #expect(
            rows.compactMap { $0["operation"] as? String }.map { $0.prefix(3) } == [
                "put", "put", "get", "get", "gc,", "gc,",
            ]
        )
        for row in rows {
            let (count, rate) = (row["count"] as? Int ?? 0, row["perSecond"] as? Double ?? 0)
            #expect(count > 0 && rate > 0, "\(row)")
            #expect(
                (row["medianMicroseconds"] as? Double ?? 0) > 0
                    && (row["usualMicroseconds"] as? [Double])?.count == 2
            )
        }
        #expect(try listing() == before.0)
        let after = try json(tool.run("stats", "--json"))
        for name in ["entries", "objects", "bytes"] { #expect(after[name] as? Int == before.1[name] as? Int) }
        let counts = [before.1, after].map { ($0["totals"] as? [String: Any])?["puts"] as? Int }
        #expect(counts[0] == 20 && counts[1] == 20)
    }

    @Test func `the benchmark is printed below the findings`() throws {
        let run = try tool.run("doctor", "--bench")
        #expect(run.status == 0 && run.output.contains("\n\nOPERATION, 4 KiB"))
        #expect(try !tool.run("doctor").output.contains("OPERATION"))
    }

    @Test(arguments: ["TERM", "INT"])
    func `a signal ends the benchmark, and no temporary files remain`(signal: String) throws {
        let run = try tool.shell(
            """
            set -m
            "$TOOL" doctor --bench >/dev/null & child=$!
            until [ -n "$(ls -A "$DISKCACHE_DIR/tmp")" ]; do kill -0 $child || exit 3; done
            kill -\(signal) $child
            wait $child
            status=$?
            ls -A "$DISKCACHE_DIR/tmp"
            exit $status
            """
        )
        #expect(run.status == (signal == "TERM" ? 143 : 130), "\(run.error)")
        #expect(run.output.isEmpty)
    }

    @Test(.enabled(if: Mount.isAllowed, "nothing can be mounted here"))
    func `the benchmark does not run if less than 64 MiB are free`() throws {
        let mount = try Mount("tmpfs", options: "size=60m")
        _ = try SharedCache(at: mount.path + "/cache")
        let run = try tool.run("doctor", "--bench", "--dir", mount.path + "/cache")
        #expect(run.status == 73 && run.error.contains("less than 64 MiB are free"))
    }
}
