// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

/// Tests of the command lines about bkt in the article "Coming from other caches".
@Suite(.takesTurns) struct ComingFromBktTests {
    let tool: Tool
    /// The file to which each run of `cmd` appends a line.
    let log: String

    init() throws {
        tool = try Tool()
        log = tool.path("log")
        let command = tool.path("cmd")
        makeFile(tool.path("FILE"), "content\n")
        // A shell writes the file, because programs that other tests start inherit this process's open files for a moment,
        // and execve(2) refuses a file that is open for writing.
        let program = "#!/bin/sh\necho x >> '\(log)'; echo out; exit ${STATUS:-0}\n"
        let made = try tool.shell("cat > '\(command)' && chmod 755 '\(command)'", input: Data(program.utf8))
        #expect(made.status == 0, "\(made.error)")
    }

    /// Runs a script with the command as `diskcache`, and with `cmd` in its path.
    private func shell(_ script: String) throws -> Tool.Run {
        try tool.shell(
            """
            cd '\(tool.path("."))'; PATH=$PWD:$PATH; diskcache() { "$TOOL" "$@"; }
            \(script)
            """
        )
    }

    private var runs: Int {
        let text = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").count
    }

    @Test func `a result is replayed, and --force runs the command again`() throws {
        let run = try shell(
            """
            diskcache run --ttl 1m -- cmd
            diskcache run --ttl 1m -- cmd
            diskcache run --ttl 1m --force -- cmd
            diskcache run --ttl 1m --force --warm -- cmd & wait
            """
        )
        #expect(run.output == "out\nout\nout\n" && run.error.isEmpty, "\(run.error)")
        #expect(runs == 3)
    }

    @Test func `--ttl and --stale set the lifetime and the stale period of a result`() throws {
        #expect(try shell("diskcache run --ttl 10s --stale 50s -- cmd").output == "out\n")
        let cache = try tool.cache()
        let entry = try #require(try cache.entries().map { try $0.get() }.first)
        let lifetime = try #require(entry.expires).timeIntervalSince(entry.created)
        #expect(abs(lifetime - 10) < 0.01 && entry.staleFor == .seconds(50))
    }

    @Test func `failures are cached only with --cache-failures`() throws {
        let run = try shell(
            """
            export STATUS=7
            diskcache run --ttl 1m -- cmd; echo $?; diskcache run --ttl 1m -- cmd
            for i in 1 2; do diskcache run --ttl 1m --cache-failures -- cmd; done; echo $?
            """
        )
        #expect(run.lines == ["out", "7", "out", "out", "out", "7"])
        #expect(runs == 3)
    }

    @Test func `directory, variables, modification times and contents become part of the key`() throws {
        let run = try shell(
            """
            export NAME=1
            diskcache run --cwd --env NAME --modtime FILE -- cmd
            diskcache run --cwd --env NAME --modtime FILE -- cmd
            NAME=2 diskcache run --cwd --env NAME --modtime FILE -- cmd
            diskcache run --hash FILE -- cmd; echo more >> FILE; diskcache run --hash FILE -- cmd
            """
        )
        #expect(run.lines.count == 5 && run.error.isEmpty, "\(run.error)")
        #expect(runs == 4)
    }

    @Test func `a scope separates its keys from all others`() throws {
        let run = try shell(
            """
            diskcache run --scope NAME/ -- cmd; diskcache run -- cmd
            (export DISKCACHE_SCOPE=NAME/; diskcache run -- cmd)
            diskcache ls --prefix NAME/ | grep -c NAME/
            diskcache rm --prefix NAME/; diskcache ls | grep -c run:
            """
        )
        #expect(run.lines == ["out", "out", "out", "1", "1"], "\(run.output)\(run.error)")
        #expect(runs == 2)
    }

    @Test func `DISKCACHE_TTL and DISKCACHE_DIR apply, and lock runs a command without caching it`() throws {
        let run = try shell(
            """
            export DISKCACHE_TTL=1m
            diskcache --dir DIR run -- cmd
            export DISKCACHE_DIR=DIR
            diskcache run -- cmd; ls DIR | grep -c '^objects$'
            diskcache lock NAME -- cmd
            """
        )
        #expect(run.lines == ["out", "out", "1", "out"], "\(run.output)\(run.error)")
        #expect(runs == 2)
    }
}
