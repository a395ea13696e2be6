// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore
@testable import DiskCacheCommand

/// Tests that `stats` and `gc --last` report the work of other processes, dead ones included.
@Suite(.takesTurns) struct StatsCommandTests {
    private let tool: Tool

    init() throws {
        tool = try Tool()
    }

    private func json(_ run: Tool.Run) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: run.outputData) as? [String: Any])
    }

    private func totals(_ run: Tool.Run) throws -> [String: Any] {
        try #require(try json(run)["totals"] as? [String: Any])
    }

    // MARK: Counts

    @Test func `the counts of several processes add up`() throws {
        for number in 1...3 {
            #expect(try tool.run("put", "k\(number)", input: Data("value".utf8)).status == 0)
        }
        for key in ["k1", "k2", "absent", "k1"] { _ = try tool.run("get", key) }
        #expect(try tool.run("rm", "k3").status == 0)
        for form in [["stats", "--json"], ["stats", "--quick", "--json"]] {
            let all = try totals(tool.run(form))
            #expect(all["puts"] as? Int == 3 && all["diskHits"] as? Int == 3 && all["misses"] as? Int == 1)
            #expect(all["removals"] as? Int == 1 && all["hitRatio"] as? Double == 0.75)
            #expect(all["bytesRead"] as? Int == 15 && all["bytesWritten"] as? Int == 5, "equal values once")
            #expect(all["since"] is String)
        }
        let usage = try #require(try json(tool.run("stats", "--quick", "--json"))["usage"] as? [String: Any])
        #expect(usage["entries"] as? Int == 2 && usage["isCounted"] as? Bool == true)
        let text = try tool.run("stats").output
        #expect(text.contains("\nkeys                                 2\n"))
        #expect(text.contains("\n  hit ratio                     75.0 %\n"))
        #expect(text.hasSuffix("\nlast collection: none yet\n"))
    }

    @Test func `computations of run, and waits for them, are counted`() throws {
        // The command runs until both other processes have found its lock held.
        let script = """
            export GO="$DISKCACHE_DIR.go"
            run() { "$TOOL" run --ttl 60 -- sh -c 'until [ -e "$GO" ]; do sleep 0.01; done'; }
            for i in 1 2 3; do run & done
            until "$TOOL" stats --quick --json 2> /dev/null | grep -q '"waits":2'; do sleep 0.01; done
            touch "$GO"; wait; run
            """
        #expect(try tool.shell(script).status == 0)
        let all = try totals(tool.run("stats", "--quick", "--json"))
        #expect(
            all["computations"] as? Int == 1 && all["waits"] as? Int == 2 && all["refreshes"] as? Int == 0
        )
    }

    @Test func `the counts of a killed process are kept`() throws {
        // The first command has stored its value. The second one is killed while it runs its own command.
        let script = """
            "$TOOL" put k <<< value
            "$TOOL" run --ttl 60 -- sh -c 'echo $$ > "$DISKCACHE_DIR.ready"; exec sleep 60' &
            until [ -s "$DISKCACHE_DIR.ready" ]; do sleep 0.01; done
            kill -KILL $!; wait $!; echo $?; kill $(cat "$DISKCACHE_DIR.ready")
            """
        #expect(try tool.shell(script).lines.last == "137")
        let all = try totals(tool.run("stats", "--quick", "--json"))
        #expect(all["puts"] as? Int == 1)
        #expect(try #require(all["misses"] as? Int) >= 1, "it looked before it ran the command")
        #expect(try tool.run("get", "k").output == "value\n")
    }

    @Test func `--reset sets the counts to 0 and reports them`() throws {
        #expect(try tool.run("put", "k", input: Data("value".utf8)).status == 0)
        let run = try tool.run("stats", "--reset")
        #expect(run.status == 0 && run.lines.count == 1)
        #expect(run.output.hasPrefix("all counts are reset to 0; they had counted for "))
        let all = try totals(tool.run("stats", "--quick", "--json"))
        #expect(all["puts"] as? Int == 0)
        #expect(try tool.run("get", "k").status == 0)
        let before = try tool.run("stats", "--reset", "--json")
        #expect(try json(before)["reset"] as? Bool == true)
        #expect(try totals(before)["diskHits"] as? Int == 1)
    }

    @Test func `--prometheus labels its metrics with the absolute path`() throws {
        #expect(try tool.run("put", "k", input: Data("value".utf8)).status == 0)
        let text = try tool.shell(
            "cd \"$DISKCACHE_DIR/..\" && DISKCACHE_DIR=cache \"$TOOL\" stats --prometheus"
        )
        #expect(text.status == 0 && text.errorData.isEmpty)
        let label = "directory=\"\(tool.directory)\""
        #expect(text.lines.contains { $0 == "diskcache_puts_total{\(label)} 1" }, "\(text.output)")
        #expect(text.lines.contains("diskcache_entries{\(label)} 1"))
    }

    @Test func `without a control file stats only scans the directory`() throws {
        #expect(try tool.run("put", "k", input: Data("value".utf8)).status == 0)
        // A directory in place of the file can be neither mapped nor replaced.
        try FileManager.default.removeItem(atPath: tool.directory + "/control")
        try FileManager.default.createDirectory(
            atPath: tool.directory + "/control/x",
            withIntermediateDirectories: true
        )
        let run = try tool.run("stats")
        #expect(run.status == 0 && run.output.contains("\nno control file: "))
        #expect(try json(tool.run("stats", "--json"))["totals"] == nil)
        for form in ["--quick", "--watch", "--prometheus", "--reset"] {
            let run = try tool.run("stats", form)
            #expect(run.status == 78 && run.outputData.isEmpty)
            #expect(run.error.hasPrefix("diskcache: read the counts of "))
            #expect(run.error.split(separator: "\n").count == 1)
        }
        let doctor = try tool.run("doctor")
        #expect(doctor.output.contains("fallback  control file  none: it can't be created"))
    }

    @Test func `contradictory options are a usage error in one line`() throws {
        for words in [["--watch", "--reset"], ["--prometheus", "--json"], ["--watch=1ms"], ["key"]] {
            let run = try tool.run(["stats"] + words)
            #expect(run.status == 64 && run.error.split(separator: "\n").count == 1)
        }
        for words in [["--dry-run"], ["--max-size=1"], ["--no-wait"]] {
            #expect(try tool.run(["gc", "--last"] + words).status == 64)
        }
    }

    // MARK: Watch

    /// A script that exits with the status of the watch, or with 137 if the watch has not ended within ten minutes.
    private static let end = """
        for i in $(seq 60000); do kill -0 $WATCH 2> /dev/null || break; sleep 0.01; done
        kill -KILL $WATCH 2> /dev/null; wait $WATCH; exit $?
        """

    @Test(arguments: [("TERM", 143), ("INT", 130)])
    func `a watch prints lines until a signal ends it`(signal: String, status: Int32) throws {
        #expect(try tool.run("put", "k", input: Data("value".utf8)).status == 0)
        let output = tool.path("watch")
        // Without job control bash starts background commands with SIGINT ignored.
        let run = try tool.shell(
            """
            set -m
            "$TOOL" stats --watch=200ms > '\(output)' & WATCH=$!
            until grep -q BYTES '\(output)'; do sleep 0.01; done
            for i in 1 2 3 4 5; do "$TOOL" get k; done
            # The interval with the last of them is told by now or in the next line.
            LINES=$(($(wc -l < '\(output)') + 2))
            until [ $(wc -l < '\(output)') -ge $LINES ]; do sleep 0.01; done
            kill -\(signal) $WATCH; \(Self.end)
            """
        )
        #expect(run.status == status)
        let lines = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
        #expect(lines[0].hasPrefix("TIME "))
        let cells = lines.dropFirst().map { $0.split(separator: " ") }
        #expect(cells.allSatisfy { $0.count == 13 && $0[11] == "1" })
        #expect(cells.contains { $0[3] == "100" })
    }

    @Test func `a watch in JSON prints one object per interval, and continues after a reset`() throws {
        #expect(try tool.run("put", "k", input: Data("value".utf8)).status == 0)
        let output = tool.path("watch")
        let run = try tool.shell(
            """
            "$TOOL" stats --watch=100ms --json > '\(output)' & WATCH=$!
            until [ -s '\(output)' ]; do sleep 0.01; done
            "$TOOL" stats --reset; "$TOOL" get k
            # The interval with it is told by now or in the next line.
            LINES=$(($(wc -l < '\(output)') + 2))
            until [ $(wc -l < '\(output)') -ge $LINES ]; do sleep 0.01; done
            kill -TERM $WATCH; \(Self.end)
            """
        )
        #expect(run.status == 143)
        let objects = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n").map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(objects.allSatisfy { $0["path"] as? String == tool.directory && $0["time"] is String })
        #expect(objects.allSatisfy { ($0["seconds"] as? Double ?? 0) > 0 && $0["entries"] == nil })
        let rates = objects.compactMap { $0["perSecond"] as? [String: Double] }
        #expect(rates.count == objects.count)
        #expect(rates.allSatisfy { $0.values.allSatisfy { $0 >= 0 } }, "a reset is no step back")
        let hits = objects.map { object in
            (object["perSecond"] as? [String: Double])?["hits"].flatMap { hits in
                (object["seconds"] as? Double).map { hits * $0 }
            } ?? 0
        }
        #expect(abs(hits.reduce(0, +) - 1) < 0.1, "it is in exactly one interval")
        let last = try #require(objects.last?["totals"] as? [String: Any])
        #expect(last["puts"] as? Int == 0 && last["diskHits"] as? Int == 1)
    }

    @Test func `a watch fails if the cache disappears`() throws {
        #expect(try tool.run("put", "k", input: Data("value".utf8)).status == 0)
        let output = tool.path("watch")
        let run = try tool.shell(
            """
            "$TOOL" stats --watch=100ms > '\(output)' & WATCH=$!
            until [ -s '\(output)' ]; do sleep 0.01; done
            mv "$DISKCACHE_DIR" "$DISKCACHE_DIR.away"; \(Self.end)
            """
        )
        #expect(run.status == 78)
        #expect(run.error.hasPrefix("diskcache: there is no cache at "))
        #expect(!FileManager.default.fileExists(atPath: tool.directory), "nor does it make another one")
    }

    @Test func `a watch continues after forged counts`() throws {
        #expect(try tool.run("put", "k", input: Data("value".utf8)).status == 0)
        let count = ControlLayout.counterShards * ControlLayout.counterSlots
        let forged = (0..<count).flatMap { _ in [0, 0, 0, 0, 0, 0, 0, 4] as [UInt8] }
        try Data(forged).write(to: URL(fileURLWithPath: tool.path("forged")))
        let output = tool.path("watch")
        let run = try tool.shell(
            """
            "$TOOL" stats --watch=100ms > '\(output)' & WATCH=$!
            until grep -q BYTES '\(output)'; do sleep 0.01; done
            dd if='\(tool.path("forged"))' of="$DISKCACHE_DIR/control" bs=8 seek=\(ControlLayout.counters) \
                conv=notrunc status=none
            # The interval with it is told by now or in the next line.
            LINES=$(($(wc -l < '\(output)') + 2))
            until [ $(wc -l < '\(output)') -ge $LINES ] || ! kill -0 $WATCH; do sleep 0.01; done
            kill -TERM $WATCH; \(Self.end)
            """
        )
        #expect(run.status == 143, "\(run.error)")
        let lines = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
        let cells = lines.dropFirst().map { $0.split(separator: " ") }
        #expect(cells.contains { $0.count == 13 && $0[4].count > 15 }, "\(lines)")
    }

    // MARK: gc --last

    @Test func `gc --last reports the last collection of another process`() throws {
        #expect(try tool.run("put", "old", "--ttl", "1ms", input: Data("value".utf8)).status == 0)
        #expect(try tool.run("put", "new", input: Data("other".utf8)).status == 0)
        let none = try tool.run("gc", "--last")
        #expect(none.status == 1 && none.outputData.isEmpty && none.errorData.isEmpty)
        let collected = try json(tool.run("gc", "--json"))
        let run = try tool.run("gc", "--last", "--json")
        #expect(run.status == 0)
        let last = try json(run)
        let removed = try #require(last["removed"] as? [String: [String: Int]])
        #expect(removed.keys.sorted() == ["expired"] && removed["expired"]?["count"] == 1)
        #expect(last["removedBytes"] as? Int == collected["removedBytes"] as? Int)
        #expect(last["isComplete"] as? Bool == true && last["expiredOnly"] as? Bool == false)
        #expect((last["entries"] as? [String: Int])?["count"] == 1)
        #expect(try #require(last["seconds"] as? Double) >= 0)
        #expect((last["drift"] as? [String: Int])?["count"] == 0)
        #expect(last["lastFull"] as? String == last["began"] as? String)
        let text = try tool.run("gc", "--last")
        #expect(
            text.lines.contains("scanned  everything") && text.lines.contains { $0.hasPrefix("expired ") }
        )
        #expect(text.lines.last?.hasPrefix("left: 1 key, 1 value, ") ?? false)
        let stats = try #require(try json(tool.run("stats", "--json"))["lastCollection"] as? [String: Any])
        #expect(stats["process"] as? Int == last["process"] as? Int)
        #expect(try tool.run("stats").lines.last?.contains("complete, removed 1 (") ?? false)
        let all = try totals(tool.run("stats", "--quick", "--json"))
        #expect((all["collected"] as? [String: Int])?["expired"] == 1)
    }

    @Test func `an expired-only collection keeps the record of the full one before it`() throws {
        #expect(try tool.run("put", "k", input: Data("value".utf8)).status == 0)
        #expect(try tool.run("gc").status == 0)
        let full = try json(tool.run("gc", "--last", "--json"))
        #expect(try tool.run("gc", "--expired-only").status == 0)
        let last = try json(tool.run("gc", "--last", "--json"))
        #expect(last["expiredOnly"] as? Bool == true)
        #expect(last["lastFull"] as? String == full["began"] as? String)
        let text = try tool.run("gc", "--last").lines
        #expect(text.contains("scanned               expired values and leftovers"))
        #expect(text.contains { $0.hasPrefix("last full collection  2") })
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/script"), "no script(1)"))
    func `a watch fits the size of its terminal, and takes its interval without =`() throws {
        #expect(try tool.run("put", "k").status == 0)
        let output = tool.path("screens")
        // Into a file, because processes that are left running would hold a pipe open.
        let run = try tool.shell(
            """
            script -qec "stty rows 5 cols 20; exec '$TOOL' stats --watch 100ms" /dev/null \
                < /dev/null > '\(output)' & WATCH=$!
            until [ $(grep -o "$(printf '\\033')\\[H" '\(output)' | wc -l) -ge 4 ] || ! kill -0 $WATCH; do
                sleep 0.01
            done
            # Not script(1), which takes two seconds to end what it has started.
            kill $(ps -o pid= --ppid $WATCH); wait
            """
        )
        let text = try String(contentsOfFile: output, encoding: .utf8)
        let screens = text.components(separatedBy: "\u{1B}[H").dropFirst()
        #expect(screens.count >= 4, "\(text) \(run.error)")
        for screen in screens.dropLast() {
            let lines = screen.components(separatedBy: "\u{1B}[K").dropLast()
            #expect(
                lines.count == 4
                    && lines.allSatisfy { $0.trimmingCharacters(in: .whitespacesAndNewlines).count <= 20 },
                "\(lines)"
            )
        }
        #expect(try tool.run("gc", "--wait", "5s").status == 0)
    }

    @Test func `the total size that stats reports equals the result of du`() throws {
        for number in 0..<20 {
            let value = Data(repeating: UInt8(number), count: number * 1000)
            #expect(try tool.run("put", "k\(number)", input: value).status == 0)
        }
        #expect(try tool.run("config", "set", "event-log", "1M").status == 0)
        #expect(try tool.run("rm", "k0").status == 0)
        let statistics = try json(tool.run("stats", "--json"))
        let bytes = try #require(statistics["bytes"] as? Int) + (statistics["overheadBytes"] as? Int ?? 0)
        #expect(try tool.shell("du -s -B1 \"$DISKCACHE_DIR\" | cut -f1").lines == ["\(bytes)"])
        let total = Quantity.text(bytes: Int64(bytes))
        #expect(try tool.run("stats").lines.contains { $0.hasPrefix("total ") && $0.hasSuffix(total) })
    }
}
