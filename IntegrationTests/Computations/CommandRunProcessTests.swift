// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests of `diskcache run` in several processes: one runs the command, and no process waits for a dead one.
@Suite(.takesTurns) struct CommandRunProcessTests {
    let tool: Tool
    let log: String

    init() throws {
        tool = try Tool()
        log = tool.path("LOG")
    }

    /// A script that starts eight runs, whose command continues until `$GO` exists, and stores their outputs and exit
    /// statuses.
    private var eight: String {
        """
        export LOG='\(log)' OUT='\(tool.path("out"))'; export GO='\(tool.path("go"))'; mkdir "$OUT"
        for i in 1 2 3 4 5 6 7 8; do
            (
                "$TOOL" run --ttl 60 -- sh -c '\(command)' > "$OUT/$i.text" &
                wait $!; echo $? > "$OUT/$i.status"
            ) &
        done
        """
    }

    /// The command, which logs its start, and ends once `$GO` exists.
    private let command = #"echo x >> "$LOG"; until [ -e "$GO" ]; do sleep 0.01; done; echo done"#

    /// A script that waits until the command runs, and gives the others time to reach its lock; later ones get the result as
    /// well.
    private let atWork = #"until [ -s "$LOG" ]; do sleep 0.01; done; sleep 0.3"#

    private func contents(_ kind: String) -> [String] {
        (1...8).compactMap { try? String(contentsOfFile: tool.path("out/\($0).\(kind)"), encoding: .utf8) }
    }

    private var runs: Int {
        ((try? String(contentsOfFile: log, encoding: .utf8)) ?? "").split(separator: "\n").count
    }

    @Test func `one of eight processes runs the command, and all print its output`() throws {
        _ = try tool.shell(eight + "\n\(atWork); touch \"$GO\"; wait")
        #expect(runs == 1)
        #expect(contents("text") == Array(repeating: "done\n", count: 8))
        #expect(contents("status") == Array(repeating: "0\n", count: 8))
        #expect(!tool.files("locks").contains { $0.hasPrefix("flight-") })
    }

    @Test func `if the process that runs the command is killed another one runs it at once`() throws {
        let script = """
            \(eight)
            \(atWork); read -r _ HOLDER _ < "$DISKCACHE_DIR"/locks/flight-*; kill -KILL $HOLDER
            until [ $(wc -l < "$LOG") = 2 ]; do sleep 0.01; done; touch "$GO"; wait
            """
        _ = try tool.shell(script)
        #expect(runs == 2)
        #expect(contents("status").sorted() == Array(repeating: "0\n", count: 7) + ["137\n"])
        #expect(contents("text").sorted() == [""] + Array(repeating: "done\n", count: 7))
    }

    @Test func `a wait ends after its limit, with a message that names the process that runs the command`()
        throws
    {
        let script = """
            \(eight)
            \(atWork); read -r _ HOLDER _ < "$DISKCACHE_DIR"/locks/flight-*
            for limit in 0 10ms; do
                "$TOOL" run --ttl 60 --wait $limit -- sh -c '\(command)'; [ $? = 75 ] && echo "gave up on $HOLDER"
            done
            touch "$GO"; wait
            "$TOOL" run --ttl 60 --wait 0 -- sh -c '\(command)'
            """
        let run = try tool.shell(script)
        let process = run.lines.first?.split(separator: " ").last ?? ""
        #expect(run.lines == ["gave up on \(process)", "gave up on \(process)", "done"])
        let messages = run.error.split(separator: "\n")
        #expect(messages.count == 2, "\(run.error)")
        #expect(
            messages.allSatisfy { $0.hasPrefix("diskcache: run: gave up waiting for process \(process), ") }
        )
        #expect(runs == 1)
    }

    @Test func `a command that calls run with the same key fails, and does not wait for itself`() throws {
        let run = try tool.shell(
            """
            "$TOOL" run -k same -- "$TOOL" run -k other -- "$TOOL" run -k same -- echo never; echo $?
            "$TOOL" run -k same -- "$TOOL" run -k other -- echo once
            """
        )
        #expect(run.lines == ["64", "once"], "\(run.output)")
        #expect(run.error.contains("runs the same command and has started this one"), "\(run.error)")
    }

    @Test func `a long wait is reported once if there is no terminal`() throws {
        let script = """
            export LOG='\(log)' GO='\(tool.path("go"))' ERRORS='\(tool.path("errors"))'
            "$TOOL" run --ttl 60 -- sh -c '\(command)' > /dev/null &
            until [ -s "$LOG" ]; do sleep 0.01; done
            "$TOOL" run --ttl 60 -- sh -c '\(command)' 2> "$ERRORS" &
            until [ -s "$ERRORS" ]; do sleep 0.01; done
            touch "$GO"; wait; cat "$ERRORS"
            """
        let run = try tool.shell(script)
        #expect(run.lines.count == 2 && run.lines[0] == "done", "\(run.output)")
        #expect(run.lines.last?.hasPrefix("diskcache: run: waiting for process ") ?? false)
    }

    @Test func `run ends by the signal that ended its command, and stores nothing`() throws {
        for signal in [9, 11, 15] {
            let script = "\"$TOOL\" run --cache-failures -- sh -c 'echo half; kill -\(signal) $$'"
            let run = try tool.shell("exec \(script)")
            #expect(run.status == 128 + Int32(signal))
            #expect(run.output == "half\n")
        }
        #expect(tool.files("entries").isEmpty)
    }

    @Test(arguments: ["HUP", "INT", "TERM", "USR1"])
    func `signals are forwarded, and a command that was asked to end is not stored`(signal: String) throws {
        let script = """
            "$TOOL" run --cache-failures -- bash -c 'trap "echo got; exit 4" \(signal); echo ready
                while :; do sleep 0.02; done' > '\(tool.path("text"))' &
            until grep -q ready '\(tool.path("text"))'; do sleep 0.01; done; kill -\(signal) $!; wait $!; exit $?
            """
        // Without job control bash starts background commands with SIGINT ignored.
        let run = try tool.shell("set -m; " + script)
        #expect(run.status == 4)
        #expect(try String(contentsOfFile: tool.path("text"), encoding: .utf8) == "ready\ngot\n")
        // Only USR1 is not a request to end.
        #expect(tool.files("entries").isEmpty == (signal != "USR1"))
    }

    @Test func `run ends by the signal of its command even if a background process is still running`() throws
    {
        let text = tool.path("text")
        // The process that is left running is killed at the end, because the test would wait for it.
        let script = """
            set -m; "$TOOL" run -- bash -c 'sleep 60 & echo $!; wait' > '\(text)' & until [ -s '\(text)' ]; do
                sleep 0.01
            done; kill -TERM $!; wait $!; echo $?; kill -0 $(cat '\(text)') && kill $(cat '\(text)')
            """
        let run = try tool.shell(script)
        #expect(run.output == "143\n" && run.status == 0, "\(run.error)")
        #expect(tool.files("entries").isEmpty)
    }

    @Test func `run ends even if its output is not read and a background process continues to write`() throws
    {
        let script = """
            set -m; mkfifo '\(log)'; exec 3<>'\(log)'
            "$TOOL" run -- bash -c 'yes & echo $! > "\(tool.path("yes"))"; wait' > '\(log)' &
            until [ -s '\(tool.path("yes"))' ]; do sleep 0.01; done; sleep 0.2; kill -TERM $!; wait $!; echo $?
            kill $(cat '\(tool.path("yes"))'); exit 0
            """
        #expect(try tool.shell(script).output == "143\n")
    }

    @Test(.enabled(if: access("/usr/bin/script", X_OK) == 0, "script(1) makes a terminal"))
    func `a command ends with its terminal, even if only run is notified`() throws {
        // The command that `script` starts leads the terminal's session. The terminal disappears with `script`.
        let script = """
            printf 'exec "%s" run -- sh -c "echo \\$\\$ > %s; exec sleep 60"' "$TOOL" '\(log)' > '\(tool.path("job"))'
            script -qec ". '\(tool.path("job"))'" /dev/null < /dev/null > /dev/null &
            until [ -s '\(log)' ]; do sleep 0.01; done; COMMAND=$(cat '\(log)'); kill -KILL $!
            for i in $(seq 6000); do kill -0 $COMMAND 2> /dev/null || { echo ended; break; }; sleep 0.1; done
            kill -KILL $COMMAND 2> /dev/null; true
            """
        #expect(try tool.shell(script).output == "ended\n")
        #expect(tool.files("entries").isEmpty)
    }

    @Test func `a signal ends a waiting run, and not the running one`() throws {
        let script = """
            set -m; export LOG='\(log)' GO='\(tool.path("go"))'
            "$TOOL" run -- sh -c '\(command)' & \(atWork)
            "$TOOL" run -- sh -c '\(command)' > '\(tool.path("waiter"))' & sleep 0.3; kill -TERM $!; wait $!; echo $?
            touch "$GO"; wait
            """
        #expect(try tool.shell(script).output == "143\ndone\n")
        #expect(runs == 1)
        #expect(try String(contentsOfFile: tool.path("waiter"), encoding: .utf8).isEmpty)
    }

    @Test func `a result that is not read to its end is not stored, and the command ends`() throws {
        let run = try tool.shell("\"$TOOL\" run -- yes | head -1; exit ${PIPESTATUS[0]}")
        #expect(run.output == "y\n" && run.status == 141)
        #expect(tool.files("entries").isEmpty)
        #expect(run.error.isEmpty)
    }

    @Test func `a killed run stores nothing`() throws {
        let text = tool.path("text")
        // The process that is left running is killed at the end, because the test would wait for it.
        let script = """
            "$TOOL" run -- sh -c 'echo $$; head -c 1000000 /dev/zero; exec sleep 60' > '\(text)' &
            until [ $(wc -c < '\(text)') -gt 1000000 ]; do sleep 0.01; done
            kill -KILL $!; wait $!; kill $(head -1 '\(text)'); "$TOOL" gc > /dev/null
            """
        _ = try tool.shell(script)
        #expect(tool.files("entries").isEmpty && tool.files("objects").isEmpty && tool.files("tmp").isEmpty)
    }

    @Test func `after a failure the waiting processes run the command one after another`() throws {
        let script = """
            for i in 1 2 3 4; do "$TOOL" run -- sh -c 'echo x >> \(log); sleep 0.1; exit 3' & done
            for i in 1 2 3 4; do wait -n; echo $?; done
            """
        #expect(try tool.shell(script).output == "3\n3\n3\n3\n")
        #expect(runs == 4)
    }

    @Test(.enabled(if: CommandMemoryTests.canMeasure, "GNU time measures the memory"))
    func `100 MB pass through in a few MB of memory, and are replayed unchanged`() throws {
        let memory = try CommandMemoryTests()
        let original = memory.tool.path("original")
        _ = try memory.tool.shell("head -c 100000000 /dev/urandom > '\(original)'")
        let command = "$TIMED \"$TOOL\" run -- cat '\(original)' | cmp - '\(original)'"
        #expect(try memory.peak(command) < CommandMemoryTests.limit)
        _ = try memory.tool.shell("echo more >> '\(original)'")
        // This run is a replay: the file is longer now.
        let replayed = "$TIMED \"$TOOL\" run -- cat '\(original)' | cmp - <(head -c 100000000 '\(original)')"
        #expect(try memory.peak(replayed) < CommandMemoryTests.limit)
    }
}
