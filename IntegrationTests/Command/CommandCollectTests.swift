// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of `diskcache gc`: waiting, watching and verifying.
@Suite(.takesTurns) struct CommandCollectTests {
    let tool: Tool
    let cache: SharedCache

    init() throws {
        tool = try Tool()
        cache = try tool.cache()
    }

    // MARK: One at a time

    @Test(arguments: [["--no-wait"], ["--wait=1ms"]])
    func `gc that may not wait reports which process is collecting, and since when`(words: [String]) throws {
        let began = Int64((Date.now.timeIntervalSince1970 - 100) * 1e9)
        // The kernel reports the lock holder: 4711 may be the identifier of a process in another container.
        for (holder, name) in [("$!", "process "), ("4711", "another process")] {
            let run = try tool.shell(
                """
                lock="$DISKCACHE_DIR/locks/janitor"
                flock --no-fork "$lock" sleep 1000 >/dev/null 2>&1 &
                trap 'kill -KILL $!' EXIT
                while flock --nonblock "$lock" true; do :; done
                printf 'sweep 1\\nprocess %d\\nbegan \(began)\\nend\\n' \(holder) > "$lock"
                "$TOOL" gc \(words.joined(separator: " "))
                """
            )
            #expect(run.status == 75)
            #expect(
                run.error.contains(": \(name)") && run.error.contains(" has been collecting for 10"),
                "\(run.error)"
            )
            #expect(run.error.split(separator: "\n").count == 1)
        }
    }

    @Test func `a lock holder that has left no record is reported as another process`() throws {
        let run = try tool.shell(
            "exec 9<>\"$DISKCACHE_DIR/locks/janitor\"; flock 9; \"$TOOL\" gc --no-wait 9>&-"
        )
        #expect(run.status == 75 && run.error.contains("another process is collecting"))
    }

    @Test func `gc --wait collects once the lock is free`() throws {
        try cache.put("value", forKey: "old", options: PutOptions(expires: .expired))
        let run = try tool.shell(
            """
            (exec 9<>"$DISKCACHE_DIR/locks/janitor"; flock 9; touch "$DISKCACHE_DIR.held"; sleep 1.5) &
            until [ -e "$DISKCACHE_DIR.held" ]; do sleep 0.01; done
            "$TOOL" gc --wait; STATUS=$?; wait; exit $STATUS
            """
        )
        #expect(run.status == 0 && run.output.hasPrefix("REMOVED"))
    }

    @Test func `gc --wait=SPAN does not give up early, even if the holder makes no progress`() throws {
        let lock = open(tool.directory + "/locks/janitor", O_RDWR | O_CLOEXEC)
        defer { close(lock) }
        try #require(flock(lock, LOCK_EX) == 0)
        var run: (status: Int32, error: String)?
        let time = try ContinuousClock().measure {
            let ended = try tool.run("gc", "--wait=1300ms")
            run = (ended.status, ended.error)
        }
        #expect(run?.status == 75 && time >= .milliseconds(1300))
    }

    @Test(arguments: [
        ["--wait", "--no-wait"], ["--watch", "1s", "--wait"], ["--watch", "1s", "--verify"],
        ["--watch", "0"],
        ["--last", "--nice"], ["--last", "--watch", "1s"], ["--wait=x"],
    ])
    func `contradictory or invalid options are refused`(words: [String]) throws {
        let run = try tool.run(["gc"] + words)
        #expect(run.status == 64 && run.error.hasPrefix("diskcache: gc: "))
    }

    @Test func `a watch ends at once if its directory is invalid`() throws {
        let run = try tool.run("gc", "--watch", "1s", "--dir", "")
        #expect(run.status == 64 && run.error == "diskcache: --dir is empty: give a directory\n")
    }

    @Test func `gc --nice removes the same entries`() throws {
        for number in 0..<20 {
            try cache.put("value \(number)", forKey: "k\(number)", options: PutOptions(expires: .expired))
        }
        let report = try json(tool.run("gc", "--nice", "--json"))
        #expect(((report["removed"] as? [String: [String: Int]])?["expired"])?["count"] == 20)
        #expect(report["isComplete"] as? Bool == true)
    }

    @Test func `gc --min-free evicts values if too little of the disk is free`() throws {
        for number in 0..<3 { try cache.put("value \(number)", forKey: "k\(number)") }
        #expect(try tool.run("gc", "--min-free", "1").output.hasPrefix("nothing to do"))
        // 100 % can never be free.
        let report = try json(tool.run("gc", "--min-free", "100%", "--json"))
        #expect((report["removed"] as? [String: [String: Int]])?["freeSpace"]?["count"] == 3)
        #expect(try tool.run("gc", "--min-free", "101%").status == 64)
        #expect(try tool.run("gc", "--min-free", "1", "--expired-only").status == 64)
    }

    // MARK: Verifying

    @Test func `gc --verify verifies the remaining values`() throws {
        try cache.put("value", forKey: "old", options: PutOptions(expires: .expired))
        try cache.put("hello", forKey: "key")
        let sound = try tool.run("gc", "--verify")
        #expect(sound.status == 0)
        #expect(
            sound.lines.first == "REMOVED  COUNT    BYTES" && sound.lines.last == "sound: 1 key, 1 value, 5 B"
        )
        let digest = Digest(of: Data("hello".utf8)).description
        let object = "$DISKCACHE_DIR/objects/\(digest.prefix(2))/\(digest)"
        _ = try tool.shell("chmod u+w \(object) && printf j | dd of=\(object) conv=notrunc status=none")
        let damaged = try tool.run("gc", "--verify", "--json")
        #expect(damaged.status == 65)
        let report = try json(damaged)
        #expect((report["verify"] as? [String: Any])?["corruptObjects"] as? [String] == [digest])
        #expect(try tool.run("gc", "--verify").lines.contains("corrupt value: \(digest)"))
    }

    // MARK: Watching

    /// A script that waits for the daemon, and kills it if it has not ended within ten minutes.
    private static let end = """
        for i in $(seq 60000); do kill -0 $WATCH 2>/dev/null || break; sleep 0.01; done
        kill -KILL $WATCH 2>/dev/null; wait $WATCH
        """

    @Test(arguments: ["TERM", "INT"])
    func `a watch prints a line per collection and exits cleanly on a signal`(signal: String) throws {
        try cache.put("value", forKey: "old", options: PutOptions(expires: .expired))
        try cache.put("hello", forKey: "key")
        let output = tool.path("watch")
        let run = try tool.shell(
            """
            set -m
            "$TOOL" gc --watch 200ms > '\(output)' 2> '\(output).errors' & WATCH=$!
            for i in $(seq 60000); do [ "$(wc -l < '\(output)')" -ge 4 ] && break; sleep 0.01; done
            kill -\(signal) $WATCH; \(Self.end)
            """
        )
        #expect(run.status == 0)
        #expect(try Data(contentsOf: URL(fileURLWithPath: output + ".errors")).isEmpty)
        let lines = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
        let left = "; left 1 key, 1 value, "
        #expect(lines[0].contains("Z removed 1, ") && lines[0].contains(" (expired 1)" + left))
        // The last collection may still have been in progress.
        #expect(lines[1...2].allSatisfy { $0.contains("Z removed nothing" + left) })
    }

    @Test func `a watch continues while there is no cache, and collects once there is one`() throws {
        let output = tool.path("watch")
        let run = try tool.shell(
            """
            # One that nothing else uses, and would make anew.
            export DISKCACHE_DIR="$DISKCACHE_DIR.other"
            "$TOOL" gc --watch 50ms --json > '\(output)' 2> '\(output).errors' & WATCH=$!
            for i in $(seq 60000); do [ -s '\(output).errors' ] && break; sleep 0.01; done
            printf value | "$TOOL" put key
            # A collection that began before the value was there is told in the next line at the latest.
            LINES=$(($(cat '\(output)' | wc -l) + 2))
            for i in $(seq 60000); do [ $(wc -l < '\(output)') -ge $LINES ] && break; sleep 0.01; done
            kill -TERM $WATCH; \(Self.end)
            """
        )
        #expect(run.status == 0)
        let errors = try String(contentsOfFile: output + ".errors", encoding: .utf8)
        #expect(errors.hasPrefix("diskcache: there is no cache at "))
        let lines = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
        let objects = try lines.map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(objects.allSatisfy { $0["time"] is String && $0["seconds"] is Double })
        // The last collection may still have been in progress.
        #expect(objects.contains { ($0["entries"] as? [String: Int])?["count"] == 1 })
    }

    @Test
    func `a signal during a collection ends the watch cleanly, and the collection is recorded`() throws {
        try cache.put("value", forKey: "old", options: PutOptions(expires: .expired))
        // Held stripes keep the collection busy for half a second.
        var held: [Int32] = []
        defer { for lock in held { close(lock) } }
        for stripe in 0..<64 {
            let name = String(stripe, radix: 16)
            let path = "\(tool.directory)/locks/object-\(name.count < 2 ? "0" : "")\(name)"
            let lock = open(path, O_RDWR | O_CLOEXEC)
            try #require(flock(lock, LOCK_SH) == 0)
            held.append(lock)
        }
        var last: CacheStatistics.LastCollection?
        // A collection that had already ended when the signal came shows nothing.
        for _ in 0..<20 where last?.isComplete ?? true {
            let run = try tool.shell(
                """
                "$TOOL" gc --watch 1h & WATCH=$!
                for i in $(seq 60000); do
                    grep -qx "process $WATCH" "$DISKCACHE_DIR/locks/janitor" && break; sleep 0.01
                done
                kill -TERM $WATCH; \(Self.end)
                """
            )
            #expect(run.status == 0)
            last = try cache.directory.lastCollection()
            #expect(last?.ended != nil)
            let isCutShort = run.output.contains("Z removed nothing; stopped early; took ")
            #expect(isCutShort == (last?.isComplete == false))
        }
        #expect(last?.isComplete == false)
    }
}
