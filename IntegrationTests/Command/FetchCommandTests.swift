// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests of `diskcache fetch` with a server on loopback.
@Suite(
    .takesTurns,
    .enabled(if: OriginServer.isPossible, "there is no python3 or no libcurl.so.4: nothing is fetched")
)
struct FetchCommandTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    func serving(_ script: String) throws -> Tool.Run {
        try OriginServer(tool: tool).run(script)
    }

    @Test func `a fresh response is requested once`() throws {
        let run = try serving(
            """
            fetch -v "$ORIGIN/fresh" && fetch -v "$ORIGIN/fresh" && cat "$LOG"
            """
        )
        #expect(run.status == 0, "\(run.error)")
        #expect(run.lines == ["fresh", "fresh", "GET /fresh -"])
        let lines = run.error.split(separator: "\n")
        #expect(lines.count == 2, "\(run.error)")
        #expect(lines.first?.contains("/fresh: fetched: diskcache; fwd=uri-miss") == true, "\(run.error)")
        #expect(lines.last?.contains("/fresh: hit: diskcache; hit; ttl=") == true, "\(run.error)")
    }

    @Test func `a stale response is revalidated, and a 304 refreshes it`() throws {
        let run = try serving(
            """
            fetch "$ORIGIN/stale" && fetch -v "$ORIGIN/stale" && cat "$LOG"
            """
        )
        #expect(run.lines == ["stale", "stale", "GET /stale -", "GET /stale \"1\""], "\(run.error)")
        #expect(run.error.contains("revalidated: diskcache; fwd=stale; fwd-status=304"), "\(run.error)")
    }

    @Test func `-R sets the modification time of the file to the server's`() throws {
        let run = try serving(
            """
            cd "$HOME"
            fetch -R -o dated "$ORIGIN/dated" && stat -c %Y dated && fetch -R -o dated "$ORIGIN/dated" && stat -c %Y dated
            fetch -R -o undated "$ORIGIN/fresh" && [ "$(stat -c %Y undated)" -gt 1000000000 ] && echo now
            fetch -R -i -o - "$ORIGIN/dated"; echo $?
            """
        )
        #expect(run.lines == ["784111777", "784111777", "now", "64"], "\(run.output)\(run.error)")
    }

    @Test func `--ttl overrides the lifetime that the server sets`() throws {
        let run = try serving(
            """
            fetch --ttl 1h "$ORIGIN/stale" && fetch --ttl 1h "$ORIGIN/stale" && wc -l <"$LOG"
            """
        )
        #expect(run.lines.map { $0.filter { $0 != " " } } == ["stale", "stale", "1"], "\(run.error)")
    }

    @Test(arguments: [("missing", 1), ("forbidden", 77), ("broken", 69), ("busy", 75)] as [(String, Int32)])
    func `an HTTP error is one line and an exit status, without output`(path: String, status: Int32) throws {
        let run = try serving("fetch --retries 0 \"$ORIGIN/\(path)\"")
        #expect(run.status == status && run.outputData.isEmpty, "\(run.output)\(run.error)")
        #expect(run.error.split(separator: "\n").count == 1, "\(run.error)")
        #expect(run.error.contains("/\(path): "), "\(run.error)")
    }

    @Test func `--include prints the head before the body, also for an error`() throws {
        let run = try serving("fetch -i \"$ORIGIN/missing\"")
        #expect(run.status == 1)
        let parts = run.output.components(separatedBy: "\r\n\r\n")
        #expect(parts.count == 2 && parts.last == "there is no such thing\n", "\(run.output)")
        #expect(parts.first?.hasPrefix("HTTP/1.1 404 Not Found\r\n") == true)
        #expect(parts.first?.contains("\r\nCache-Status: diskcache; ") == true, "\(run.output)")
    }

    @Test func `--offline sends no request`() throws {
        let run = try serving(
            """
            fetch --offline "$ORIGIN/stale"; echo $?
            fetch "$ORIGIN/stale"; stop
            fetch --offline -v "$ORIGIN/stale"; echo $?
            """
        )
        #expect(run.lines == ["1", "stale", "stale", "0"], "\(run.error)")
        #expect(run.error.contains(": stale: diskcache; hit"), "\(run.error)")
    }

    @Test func `--stale-if-error returns a stale response if the server is down, and a miss fails`() throws {
        let run = try serving(
            """
            fetch --stale-if-error 1h "$ORIGIN/stale"; stop
            fetch --retries 0 --stale-if-error 1h "$ORIGIN/stale"; echo $?
            fetch --retries 0 "$ORIGIN/other"; echo $?
            """
        )
        #expect(run.lines == ["stale", "stale", "0", "69"], "\(run.error)")
    }

    @Test func `several responses are written to their files, or to the output in order`() throws {
        let (one, other) = (tool.path("one"), tool.path("other"))
        let run = try serving(
            """
            fetch -p 4 "$ORIGIN/large" "$ORIGIN/fresh" "$ORIGIN/other" | tail -c 12
            fetch -p 2 -o '\(one)' -o '\(other)' "$ORIGIN/fresh" "$ORIGIN/other" && cat '\(other)' '\(one)'
            """
        )
        #expect(run.lines == ["fresh", "other", "other", "fresh"], "\(run.error)")
    }

    @Test func `the first of several failures sets the exit status, and the other URLs are fetched`() throws {
        let run = try serving("fetch --retries 0 \"$ORIGIN/forbidden\" \"$ORIGIN/missing\" \"$ORIGIN/fresh\"")
        #expect(run.status == 77 && run.output == "fresh\n", "\(run.error)")
        #expect(run.error.split(separator: "\n").count == 2, "\(run.error)")
    }

    @Test(arguments: [["--digest", String(repeating: "0", count: 64)], ["--max-size", "3"]])
    func `a body with a wrong digest or size is refused, and the file is kept`(options: [String]) throws {
        makeFile(tool.path("out"), "before")
        let words = options.joined(separator: " ")
        let run = try serving("fetch \(words) -o '\(tool.path("out"))' \"$ORIGIN/fresh\"")
        #expect(run.status == 65 && run.error.split(separator: "\n").count == 1, "\(run.error)")
        #expect(try String(contentsOfFile: tool.path("out"), encoding: .utf8) == "before")
    }

    @Test func `--digest accepts the digest that sha256sum prints`() throws {
        let run = try serving(
            """
            sum=$(printf 'fresh\\n' | sha256sum | cut -d' ' -f1)
            fetch --digest "$sum" "$ORIGIN/fresh" && fetch --digest "sha256:$sum" "$ORIGIN/fresh"
            """
        )
        #expect(run.status == 0 && run.lines == ["fresh", "fresh"], "\(run.error)")
    }

    @Test func `--json prints one object per URL, also for a failure`() throws {
        let run = try serving("fetch --json \"$ORIGIN/fresh\" \"$ORIGIN/missing?token=1\"")
        #expect(run.status == 1 && run.lines.count == 2, "\(run.output)")
        let objects = try run.lines.map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(objects[0]["status"] as? Int == 200 && objects[0]["length"] as? Int == 6)
        #expect(objects[0]["outcome"] as? String == "fetched")
        #expect((objects[0]["digest"] as? String)?.count == 64)
        #expect((objects[1]["error"] as? String)?.contains("404 Not Found") == true)
        #expect((objects[1]["error"] as? String)?.contains("token") == false)
        // What the server has answered stands beside the error.
        #expect(objects[1]["status"] as? Int == 404 && objects[1]["outcome"] as? String == "fetched")
        let fields = try #require(objects[1]["fields"] as? [[String: String]])
        #expect(fields.contains { $0["name"]?.lowercased() == "content-length" }, "\(fields)")
    }

    @Test(.enabled(if: Tracer.works, "strace is not installed, or tracing is not allowed"))
    func `a stored response takes no other thread and no futex per file`() throws {
        let count = 20
        let run = try serving(
            """
            for i in $(seq \(count)); do set -- "$@" -o "$HOME/f$i"; done
            for i in $(seq \(count)); do set -- "$@" "$ORIGIN/fresh"; done
            fetch "$@" && strace -f -qq -o "$HOME/calls" -e trace=clone,clone3,futex "$TOOL" fetch "$@" && wc -l < "$LOG"
            """
        )
        #expect(run.status == 0 && run.lines.map { $0.filter { $0 != " " } } == ["1"], "\(run.error)")
        let calls = try String(contentsOfFile: tool.path("calls"), encoding: .utf8).split(separator: "\n")
        #expect(!calls.contains { $0.contains(" clone") }, "\(calls)")
        #expect(calls.count { $0.contains(" futex(") } < count, "\(calls)")
    }

    @Test(arguments: ["", "trap '' PIPE; "], ["", "-i "])
    func `a reader that has exited ends a fetch without a message`(prefix: String, options: String) throws {
        // The pipe loses its only reader. A process substitution would do too, but a run hung in bash's `wait` for one.
        let run = try serving(
            """
            \(prefix)mkfifo "$HOME/pipe"; exec 3<>"$HOME/pipe" 4>"$HOME/pipe" 3>&-
            fetch \(options)"$ORIGIN/fresh" "$ORIGIN/stale" >&4 && echo done
            wc -l < "$LOG"
            """
        )
        let lines = run.lines.map { $0.filter { $0 != " " } }
        #expect(lines == ["1"] && run.error.isEmpty, "\(run.output)\(run.error)")
    }

    @Test(arguments: [">/dev/full", "-o /dev/full", "-i -o /dev/full"])
    func `a full output is an error of the output`(output: String) throws {
        let run = try serving("fetch \"$ORIGIN/fresh\" \(output)")
        #expect(run.status == 74 && run.error.contains("No space left on device"), "\(run.error)")
    }

    @Test func `fields from a file are sent, and secrets are not stored in the directory`() throws {
        makeFile(tool.path("fields"), "X-Test: echoed\n# a remark\nAuthorization: Bearer s3cr3t\n")
        let run = try serving(
            """
            fetch -H '@\(tool.path("fields"))' "$ORIGIN/echo?user=1"
            if grep -r s3cr3t "$DISKCACHE_DIR"; then echo found; fi
            """
        )
        #expect(run.output == "echoed", "\(run.output)\(run.error)")
    }

    @Test func `no message contains the credentials of a URL`() throws {
        let run = try serving(
            """
            fetch -v --json "http://me:s3cr3t@${ORIGIN#http://}/missing"
            fetch "http://me:s3cr3t@/x y"
            """
        )
        #expect(!run.output.contains("s3cr3t") && !run.error.contains("s3cr3t"), "\(run.output)\(run.error)")
    }

    @Test func `a transfer that times out never leaves part of a body in the file`() throws {
        makeFile(tool.path("out"), "before")
        let run = try serving("fetch --time-limit 1ms -o '\(tool.path("out"))' \"$ORIGIN/large\"")
        #expect(run.status == 75 || run.status == 0, "\(run.error)")
        let text = try String(contentsOfFile: tool.path("out"), encoding: .utf8)
        #expect(text == "before" || text.utf8.count == 1 << 20)
    }

    @Test(arguments: [
        [], ["ftp://x/y"], ["x"], ["--mode", "nonsense", "http://x/"],
        ["--mode", "reload", "--offline", "http://x/"],
        ["-o", "a", "http://x/", "http://y/"], ["-o", "", "http://x/"], ["--digest", "12", "http://x/"],
        ["-H", "nothing", "http://x/"], ["-p", "0", "http://x/"], ["http://x/a b"],
    ])
    func `invalid arguments are refused in one line, and no directory is created`(words: [String]) throws {
        let run = try tool.run(["fetch"] + words)
        #expect(run.status == 64 && run.error.split(separator: "\n").count == 1, "\(run.error)")
        #expect(!FileManager.default.fileExists(atPath: tool.directory))
    }
}
