// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of `diskcache run`: which results are replayed, and when the command runs again.
@Suite(.takesTurns) struct CommandRunTests {
    let tool: Tool
    /// The file to which each run of the command appends a line.
    let log: String

    init() throws {
        tool = try Tool()
        log = tool.path("LOG")
    }

    /// Runs a script with `$RUN`, the log as `$LOG`, and a command that logs its run there as `$NOTE`.
    @discardableResult
    func shell(_ script: String) throws -> Tool.Run {
        try tool.shell("export LOG='\(log)'; RUN=\"$TOOL run\"; NOTE='echo x >> \"$LOG\"'; \(script)")
    }

    /// The number of runs of the command.
    var runs: Int {
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").count
    }

    @Test func `the second call replays bytes, streams and status, without running`() throws {
        let script = """
            $RUN --cache-failures -- bash -c "$NOTE; printf 'a\\\\0\\\\xff'; sleep 0.05; echo e1 >&2; sleep 0.05
            echo b; sleep 0.05; printf e2 >&2; exit 3"
            """
        let first = try shell(script)
        #expect(first.status == 3)
        #expect(first.outputData == Data([97, 0, 255]) + Data("b\n".utf8))
        #expect(first.error == "e1\ne2")
        let second = try shell(script)
        #expect(second.status == 3)
        #expect(second.outputData == first.outputData)
        #expect(second.errorData == first.errorData)
        #expect(runs == 1)
    }

    @Test func `both streams keep their order, when it runs and when it is replayed`() throws {
        let seen = tool.path("seen")
        // Each line is written after the previous one has arrived: the order of two simultaneous lines is undefined.
        let script = """
            export SEEN='\(seen)'; : > "$SEEN"; $RUN -- bash -c "$NOTE"';
            said() { until [ $(wc -l < "$SEEN") = $1 ]; do sleep 0.01; done; }
            for i in 1 2 3 4 5 6 7 8; do
                echo out$i; said $((2 * i - 1)); echo err$i >&2; said $((2 * i))
            done' > "$SEEN" 2>&1; cat "$SEEN"
            """
        let expected = (1...8).map { "out\($0)\nerr\($0)\n" }.joined()
        #expect(try shell(script).output == expected)
        #expect(try shell(script).output == expected)
        #expect(runs == 1)
    }

    @Test func `a failure is stored only with --cache-failures, and replayed only with it`() throws {
        let command = "-- sh -c \"$NOTE; echo f; exit 7\""
        for count in 1...2 {
            #expect(try shell("$RUN \(command)").status == 7)
            #expect(runs == count)
        }
        #expect(try shell("$RUN --cache-failures=1h \(command)").status == 7)
        let kept = try shell("$RUN --cache-failures=1h \(command)")
        #expect(kept.status == 7 && kept.output == "f\n")
        #expect(runs == 3)
        _ = try shell("$RUN \(command)")
        #expect(runs == 4)
    }

    @Test func `the time of --cache-failures is given with or without =`() throws {
        for option in ["--cache-failures=1h --", "--cache-failures 1h --"] {
            for _ in 1...2 {
                #expect(try shell("$RUN --key k \(option) sh -c \"$NOTE; exit 3\"").status == 3)
            }
        }
        #expect(runs == 1)
        // A word that is not a time span is the command, even if it begins with a digit.
        let run = try shell(
            "cd \"${LOG%/*}\" && ln -s /bin/echo 7z && PATH=.:$PATH; $RUN --cache-failures -- 7z -- x"
        )
        #expect(run.output == "-- x\n")
    }

    @Test func `an expired result is computed again`() throws {
        try shell("$RUN --ttl 1h -- sh -c \"$NOTE\"; $RUN --ttl 1h -- sh -c \"$NOTE\"")
        #expect(runs == 1)
        // The time to live of the replaying call counts, too.
        try shell("sleep 0.05; $RUN --ttl 1ms -- sh -c \"$NOTE\"")
        #expect(runs == 2)
    }

    @Test func `DISKCACHE_TTL sets the lifetime of results unless the call does`() throws {
        let command = "-- sh -c \"$NOTE\""
        try shell("export DISKCACHE_TTL=1ms; $RUN \(command); sleep 0.05; $RUN \(command)")
        #expect(runs == 2)
        try shell("export DISKCACHE_TTL=1ms; sleep 0.05; for i in 1 2; do $RUN --ttl 1h \(command); done")
        #expect(runs == 3)
    }

    @Test func `a result in a scope is refreshed in that scope`() throws {
        let run = try shell(
            """
            export DISKCACHE_SCOPE=s/
            $RUN --ttl 1ms --stale 1h --key k -- sh -c "$NOTE"; sleep 0.01
            $RUN --ttl 1h --stale 1h --key k -- sh -c "$NOTE"
            for i in $(seq 6000); do [ -n "$("$TOOL" ls)" ] && break; sleep 0.01; done; "$TOOL" ls
            """
        )
        #expect(run.lines == ["s/k"], "\(run.output)\(run.error)")
        #expect(runs == 2)
    }

    @Test func `a stale result is replayed at once and refreshed once for all callers`() throws {
        let value = tool.path("value")
        makeFile(value, "old\n")
        let (go, program) = (tool.path("go"), tool.path("program"))
        // The command continues once `go` exists, and after a minute in any case, so that nothing hangs.
        makeFile(
            program,
            "for i in $(seq 6000); do [ -e '\(go)' ] && break; sleep 0.01; done; cat '\(value)'\n"
        )
        let command = "--stale 1h --key s -- sh -c \"$NOTE; . '\(program)'\""
        #expect(try shell("touch '\(go)'; $RUN --ttl 100ms \(command); rm '\(go)'").output == "old\n")
        // If the refreshing process held this output open, `cat` would wait for it.
        let script = """
            echo new > '\(value)'; sleep 0.2; for i in 1 2 3 4 5 6; do $RUN --ttl 1h \(command) & done | cat
            "$TOOL" get s | grep -c new; touch '\(go)'; for i in $(seq 6000); do
                "$TOOL" get --stale s | grep -q new && break; sleep 0.1
            done; $RUN --ttl 1h \(command); sleep 0.5
            """
        let lines = try shell(script).lines
        #expect(lines.dropLast(2) == Array(repeating: "old", count: 6)[...])
        #expect(lines.suffix(2) == ["0", "new"])
        #expect(runs == 2)
    }

    @Test func `--force runs the command again and stores, and --warm stores without output`() throws {
        let command = "-- sh -c \"$NOTE; wc -l < \\\"$LOG\\\"; exit 0\""
        let warm = try shell("$RUN --warm \(command)")
        #expect(warm.output.isEmpty && warm.error.isEmpty && warm.status == 0)
        #expect(try shell("$RUN \(command)").output == "1\n")
        #expect(try shell("$RUN --warm \(command)").status == 0)
        #expect(runs == 1)
        #expect(try shell("$RUN --force \(command)").output == "2\n")
        #expect(try shell("$RUN \(command)").output == "2\n")
        #expect(try shell("$RUN --warm -- sh -c 'exit 9'").status == 9)
    }

    @Test func `variables, directory, files and scope are part of the key if requested`() throws {
        let file = tool.path("file")
        let calls = [
            "V=1 $RUN --env V", "V=2 $RUN --env V", "V= $RUN --env V", "env -u V $RUN --env V",
            "cd /; $RUN --cwd", "cd /tmp; $RUN --cwd", "$RUN --modtime '\(file)'",
            "touch -d @1.000000001 '\(file)'; $RUN --modtime '\(file)'",
            "touch -d @1.000000002 '\(file)'; $RUN --modtime '\(file)'", "$RUN --hash '\(file)'",
            "echo 1 > '\(file)'; $RUN --hash '\(file)'", "$RUN", "$RUN --scope s",
            "$RUN --key k", "$RUN --key k --scope s", "DISKCACHE_SCOPE=t $RUN",
            "DISKCACHE_SCOPE=t $RUN --key k",
        ]
        for (number, call) in calls.enumerated() {
            try shell("\(call) -- sh -c \"$NOTE\"; \(call) -- sh -c \"$NOTE\"")
            #expect(runs == number + 1, "\(call)")
        }
        // An empty scope is the same as no scope, and the variable is equivalent to the option.
        try shell("DISKCACHE_SCOPE=t $RUN --scope '' -- sh -c \"$NOTE\"; $RUN --scope t -- sh -c \"$NOTE\"")
        try shell("touch -d @5 '\(file)'; $RUN --hash '\(file)' -- sh -c \"$NOTE\"")
        #expect(runs == calls.count)
        // The contents of a pipe of the shell are hashed, not its number, which is the highest free descriptor up to 63.
        try shell(
            "$RUN --hash <(echo 1) -- sh -c \"$NOTE\"; exec 63</dev/null; $RUN --hash <(echo 1) -- sh -c \"$NOTE\""
        )
        #expect(runs == calls.count + 1)
        try shell("$RUN --hash <(echo 2) -- sh -c \"$NOTE\"; $RUN --hash <(true) -- sh -c \"$NOTE\"")
        #expect(runs == calls.count + 3)
        let named = try shell("cd \"$HOME\"; mkfifo pipe; $RUN --hash pipe -- true")
        #expect(named.status == 0 && named.error.contains("pipe: it is not a regular file"), "\(named.error)")
        // Without their options directory and variables are not part of the key.
        try shell("cd /; V=3 $RUN -- sh -c \"$NOTE\"")
        #expect(runs == calls.count + 3)
    }

    @Test func `--key names the result, and another value under the key is replaced`() throws {
        _ = try tool.run("put", "mine", input: Data("no recording".utf8))
        #expect(try shell("$RUN --key mine -- sh -c \"$NOTE; echo 1\"").output == "1\n")
        #expect(try shell("$RUN --key mine -- echo other").output == "1\n")
        #expect(try tool.run("rm", "mine").status == 0)
        #expect(try shell("$RUN --key mine -- echo other").output == "other\n")
    }

    @Test func `the command gets an empty input`() throws {
        #expect(try shell("echo text | $RUN -- cat").output.isEmpty)
    }

    @Test func `a command that can't be executed fails as in a shell, and is not stored`() throws {
        let missing = try shell("$RUN --cache-failures -- /nonexistent/command")
        #expect(missing.status == 127)
        #expect(missing.error.hasPrefix("diskcache: run: /nonexistent/command: No such file"))
        #expect(missing.error.split(separator: "\n").count == 1)
        #expect(try shell("$RUN -- /etc/passwd").status == 126)
        #expect(tool.files("entries").isEmpty)
    }

    @Test func `without a usable cache the command runs, with one line of warning`() throws {
        // A file in place of the directory.
        makeFile(tool.directory)
        let run = try shell("$RUN -- sh -c \"$NOTE; echo out; echo err >&2; exit 5\"")
        #expect(run.status == 5 && run.output == "out\n" && run.error.hasSuffix("err\n"))
        #expect(run.error.split(separator: "\n").count == 2)
        #expect(runs == 1)
    }

    @Test(.enabled(if: getuid() != 0, "nothing is forbidden to root"))
    func `in a read-only directory the command runs, and hits are replayed`() throws {
        try shell("$RUN -- echo stored; chmod -R a-w \"$DISKCACHE_DIR\"")
        #expect(try shell("$RUN -- echo stored").output == "stored\n")
        let run = try shell("$RUN -- echo other; chmod -R u+w \"$DISKCACHE_DIR\"")
        #expect(run.output == "other\n" && run.error.hasPrefix("diskcache: run: "))
    }

    @Test func `a result that is too large for the file system is printed and not stored`() throws {
        // Files are limited to 64 KiB: neither the recording nor the value fits.
        let run = try shell("ulimit -f 64; $RUN -- head -c 1000000 /dev/zero | wc -c")
        #expect(run.output == "1000000\n")
        #expect(run.error.contains("not stored"), "\(run.error)")
        #expect(tool.files("entries").isEmpty)
    }

    // MARK: Failures

    @Test(arguments: [
        "env -u DISKCACHE_DIR -u HOME", "env -u DISKCACHE_DIR HOME=here",
        "env DISKCACHE_DIR=", "env DISKCACHE_DIR=/dev/null", "env DISKCACHE_DIR=/dev/null/x",
        "env DISKCACHE_METADATA=nonsense", "env DISKCACHE_TTL=soon", "env DISKCACHE_TTL=0",
        "env DISKCACHE_SCOPE=$'\\xff'", "OPTIONS='--hash /dev/null'; env", "env DISKCACHE_DIR=\"$HOME\"",
        "mkdir gone; cd gone; rmdir ../gone; OPTIONS=--cwd; env",
        "ln -s loop loop; OPTIONS='--modtime loop'; env", "OPTIONS='--dir='; env",
        "rm -rf $DISKCACHE_DIR/locks; touch $DISKCACHE_DIR/locks; env", "touch $DISKCACHE_DIR/letter; env",
    ])
    func `the command runs whatever is wrong with the cache, and one line tells why`(obstacle: String) throws
    {
        try FileManager.default.createDirectory(atPath: tool.directory, withIntermediateDirectories: true)
        let run = try shell(
            """
            cd "$HOME"; \(obstacle) "$TOOL" run $OPTIONS -- sh -c 'echo out; echo x >> "$LOG"; echo err >&2; exit 3'
            """
        )
        #expect(run.status == 3 && run.output == "out\n", "\(run.error)")
        let lines = run.error.split(separator: "\n").map(String.init)
        #expect(lines.last == "err", "\(run.error)")
        // A shell in a deleted directory prints a message, too.
        let ours = lines.filter { $0.hasPrefix("diskcache: ") }
        #expect(ours.count == 1, "\(run.error)")
        #expect(
            ours.first?.contains(" run: the result is neither shared nor stored: ") == true,
            "\(run.error)"
        )
        #expect(runs == 1)
    }

    @Test func `arguments are bytes, in the key and for the command`() throws {
        let script = """
            for byte in '\\xff' '\\xfe' '\\xff'; do
                $RUN -- bash -c "$NOTE"'; printf %s "$1" | od -An -tx1' bash "$(printf "a${byte}b")"
            done
            """
        let run = try shell(script)
        #expect(run.lines == [" 61 ff 62", " 61 fe 62", " 61 ff 62"], "\(run.error)")
        #expect(runs == 2)
        // This also applies to the refresh in the background, and to the path of the cache.
        let renewed = try shell(
            """
            base=$DISKCACHE_DIR; export DISKCACHE_DIR="$base"$'\\xe9'
            for i in 1 2; do
                $RUN --ttl 1ms --stale 1h -- bash -c 'printf %s "$1" | od -An -tx1 >> "$LOG.odd"' bash $'\\xff'
                sleep 0.01
            done
            for i in $(seq 500); do [ "$(wc -l < "$LOG.odd")" = 2 ] && break; sleep 0.02; done; cat "$LOG.odd"
            ls -d "$base"?* | wc -l
            """
        )
        #expect(renewed.lines == [" ff", " ff", "1"], "\(renewed.error)")
        // Options must be UTF-8.
        let wrong = try shell("$RUN --key $'\\xff' -- echo x")
        #expect(wrong.status == 64 && wrong.error.contains("UTF-8"))
    }
}
