// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of `diskcache lock` and `diskcache incr`.
@Suite(.takesTurns) struct LockCommandTests {
    let tool: Tool
    let log: String

    init() throws {
        tool = try Tool()
        log = tool.path("log")
    }

    private var lockFiles: [String] { tool.files("locks").filter { $0.hasPrefix("lock-") } }

    /// A script that starts a holder of the lock, which records its process and holds the lock until `$GO` exists.
    private var holding: String {
        """
        export LOG='\(log)' GO='\(tool.path("go"))'
        "$TOOL" lock name -- sh -c 'echo $$ > "$LOG"; until [ -e "$GO" ]; do sleep 0.01; done' & HOLDER=$!
        until [ -s "$LOG" ]; do sleep 0.01; done
        """
    }

    // MARK: lock

    @Test func `the command runs as it would without a lock`() throws {
        let input = Data("input".utf8)
        let run = try tool.run("lock", "name", "--", "sh", "-c", "cat; echo error >&2; exit 7", input: input)
        #expect(run.status == 7 && run.outputData == input && run.error == "error\n")
        #expect(try tool.run("lock", "name", "true").status == 0)
        #expect(try tool.run("lock", "-w", "0", "name", "--", "sh", "-c", "kill -KILL $$").status == 137)
        #expect(lockFiles.count == 1, "one stays until the next collection")
        #expect(try tool.run("gc").status == 0)
        #expect(lockFiles.isEmpty)
    }

    @Test func `arguments after the name of the command belong to the command`() throws {
        #expect(try tool.run("lock", "name", "echo", "-w", "5", "--", "-d").output == "-w 5 -- -d\n")
        #expect(try tool.run("lock", "name", "-w", "5", "echo", "-w").output == "-w\n")
        #expect(try tool.run("lock", "-w", "0", "--", "-n", "--", "echo", "--", "-x").output == "-- -x\n")
    }

    @Test func `the arguments of the command need not be UTF-8, but the lock's name must be`() throws {
        let script = """
            WORD=$(printf '\\377')
            "$TOOL" lock name -- printf %s "$WORD" | od -An -tx1
            "$TOOL" lock "$WORD" -- echo ran; echo $?
            """
        #expect(try tool.shell(script).output == " ff\n64\n")
    }

    @Test func `the lock excludes other processes, and a wait that times out reports the holder`() throws {
        let script = """
            \(holding)
            "$TOOL" lock name --wait 0 -- echo ran; echo $?
            "$TOOL" lock name --wait 20ms -- echo ran; echo $?
            "$TOOL" lock other --wait 0 -- echo other; echo $?
            "$TOOL" lock --permits 2 name --wait 0 -- echo second; echo $?
            echo $HOLDER $(cat "$LOG"); touch "$GO"; "$TOOL" lock name -- echo ran; wait
            """
        let run = try tool.shell(script)
        #expect(run.lines.prefix(6) == ["75", "75", "other", "0", "second", "0"], "\(run.error)")
        let processes = try #require(run.lines.dropFirst(6).first).split(separator: " ")
        #expect(processes.count == 2 && processes[0] == processes[1], "the command is in the place of lock")
        #expect(run.lines.last == "ran")
        let errors = run.error.split(separator: "\n")
        #expect(errors.count == 2)
        let holder = "process \(processes[0]) holds it"
        #expect(errors.allSatisfy { $0.contains("the lock name in") && $0.contains(holder) })
    }

    @Test func `the command holds the same lock as the library`() throws {
        let lock = try tool.cache().lock("name")
        #expect(try tool.run("lock", "name", "--wait", "0", "--", "echo", "ran").status == 75)
        lock.unlock()
        let run = try tool.run("lock", "name", "--wait", "0", "--", "echo", "ran")
        #expect(run.status == 0 && run.output == "ran\n")
    }

    @Test func `a waiter gets the lock of a killed command`() throws {
        let script = """
            \(holding)
            "$TOOL" lock name -- echo ran & WAITER=$!
            sleep 0.1; kill -KILL $HOLDER; wait $WAITER; echo $?; wait $HOLDER; echo $?
            """
        #expect(try tool.shell(script).output == "ran\n0\n137\n")
    }

    @Test func `a waiter that is terminated runs no command`() throws {
        let script = """
            \(holding)
            set -m; "$TOOL" lock name -- echo ran & sleep 0.1; kill -TERM $!; wait $!; echo $?
            touch "$GO"; wait
            """
        #expect(try tool.shell(script).output == "143\n")
    }

    @Test func `a background process that the command leaves behind holds the lock`() throws {
        let script = """
            export GO='\(tool.path("go"))'
            "$TOOL" lock name -- sh -c '(until [ -e "$GO" ]; do sleep 0.01; done) > /dev/null 2>&1 &'
            "$TOOL" lock name --wait 0 -- true; echo $?
            touch "$GO"; "$TOOL" lock name -- echo free
            """
        #expect(try tool.shell(script).output == "75\nfree\n")
    }

    @Test func `a command that can't be executed is reported as by env, and leaves no lock file`() throws {
        let absent = try tool.run("lock", "name", "--", "/none/such")
        #expect(absent.status == 127 && absent.error.hasPrefix("diskcache: lock: /none/such: "))
        makeFile(tool.path("text"))
        #expect(try tool.run("lock", "name", "--", tool.path("text")).status == 126)
        #expect(lockFiles.isEmpty)
    }

    @Test func `without a usable lock the command does not run`() throws {
        makeFile(tool.path("file"))
        let run = try tool.run("--dir", tool.path("file"), "lock", "name", "--", "echo", "ran")
        #expect(run.status == 73 && run.outputData.isEmpty)
    }

    @Test func `three permits admit at most three of eight processes`() throws {
        // Each process has a file while it holds a permit, and counts all such files, its own included.
        let script = """
            export PLACE='\(tool.path("inside"))' LOG='\(log)'; mkdir "$PLACE"
            for i in 1 2 3 4 5 6 7 8; do
                (for turn in 1 2 3; do
                    "$TOOL" lock name --permits 3 -- sh -c \
                        'touch "$PLACE/$$"; ls "$PLACE" | wc -l >> "$LOG"; sleep 0.01; rm "$PLACE/$$"'
                done) &
            done; wait
            """
        _ = try tool.shell(script)
        let counts = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map {
            Int($0.filter(\.isNumber)) ?? 99
        }
        #expect(counts.count == 24)
        #expect(counts.allSatisfy { (1...3).contains($0) }, "\(counts)")
    }

    // MARK: incr

    @Test func `incr prints the sum and stores it as a value`() throws {
        #expect(try tool.run("incr", "n").output == "1\n")
        #expect(try tool.run("incr", "n", "41").output == "42\n")
        #expect(try tool.run("incr", "n", "--", "-50").output == "-8\n")
        #expect(try tool.run("get", "n").output == "-8")
        #expect(try tool.run("put", "n", input: Data("5".utf8)).status == 0)
        #expect(try tool.run("incr", "n").output == "6\n")
    }

    @Test func `the options apply only if incr creates the number`() throws {
        #expect(try tool.run("incr", "n", "--ttl", "1h", "--renew").status == 0)
        #expect(try tool.run("incr", "n", "--ttl", "never").status == 0)
        let entry = try #require(try tool.cache().entry(forKey: "n"))
        #expect(entry.expires != nil && entry.extendsOnAccess == .seconds(3600))
    }

    @Test func `a value that is not a number is refused and kept`() throws {
        #expect(try tool.run("put", "k", input: Data("text".utf8)).status == 0)
        let run = try tool.run("incr", "k")
        #expect(run.status == 64 && run.outputData.isEmpty && run.error.contains("not a whole number"))
        #expect(try tool.run("get", "k").output == "text")
    }

    @Test func `no increment of eight processes is lost`() throws {
        let script = """
            for i in 1 2 3 4 5 6 7 8; do
                (for turn in 1 2 3 4 5; do "$TOOL" incr n > /dev/null; done) &
            done; wait; "$TOOL" get n
            """
        #expect(try tool.shell(script).output == "40")
    }
}
