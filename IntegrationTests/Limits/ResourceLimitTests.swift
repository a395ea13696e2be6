// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests that low limits of file size, descriptors or address space (getrlimit(2)) cause errors and no signals.
@Suite(.takesTurns) struct ResourceLimitTests {
    /// Returns the outcome of each call that `LimitProbe` makes under the limit.
    private func calls(_ limit: String, _ bytes: Int, _ moment: String) throws -> [String: String] {
        let directory = try TemporaryDirectory()
        let run = try BuiltCommand.run(
            BuiltCommand.probes,
            ["limit", directory.path + "/cache", directory.path, limit, "\(bytes)", moment]
        )
        #expect(run.status == 0, "\(run.output)")
        let lines = run.output.split(separator: "\n").split(separator: "limited").last ?? []
        return Dictionary(
            lines.map { line in
                let words = line.split(separator: " ", maxSplits: 1).map(String.init)
                return (words[0], words.last ?? "")
            },
            uniquingKeysWith: { $1 }
        )
    }

    private func expectWhole(_ calls: [String: String]) {
        #expect(calls["healthy"] == "ok" && calls["value"] == "ok", "\(calls)")
    }

    @Test(arguments: ["before", "after"])
    func `with a file size limit of 0 puts fail and reads work`(moment: String) throws {
        let calls = try calls("fsize", 0, moment)
        let fails = "noSpace \(EFBIG)"
        for call in ["put", "put-large", "put-file", "put-if-absent", "update", "get-file"] {
            #expect(calls[call] == fails, "\(call)")
        }
        for call in ["get", "get-large", "contains", "touch", "set-expiration", "list", "collect", "verify"] {
            #expect(calls[call] == "ok", "\(call)")
        }
        expectWhole(calls)
    }

    @Test(arguments: [1 << 20, 1 << 20 | 12345])
    func `a value over the file size limit is refused, and a shorter one is stored`(limit: Int) throws {
        let calls = try calls("fsize", limit, "after")
        for call in ["put-large", "put-file", "get-file"] {
            #expect(calls[call] == "noSpace \(EFBIG)", "\(call)")
        }
        for call in ["put", "put-if-absent", "update", "get", "get-large", "verify"] {
            #expect(calls[call] == "ok", "\(call)")
        }
        expectWhole(calls)
    }

    @Test func `without a free descriptor calls fail with EMFILE, and no descriptor leaks`() throws {
        let calls = try calls("nofile", 0, "after")
        let fails = "inputOutput \(EMFILE)"
        for call in ["put", "put-large", "put-file", "get", "get-large", "get-file", "list", "verify"] {
            #expect(calls[call] == fails || call == "list" && calls[call] == "miss", "\(call)")
        }
        #expect(calls["leaked"] == "0")
        expectWhole(calls)
        let opening = try self.calls("nofile", 0, "before")
        #expect(opening["open"] == fails)
    }

    @Test func `without memory for a large value its calls fail, and small values work`() throws {
        let calls = try calls("as", 24 << 20, "after")
        let fails = "inputOutput \(ENOMEM)"
        #expect(calls["get-large"] == fails && calls["put-large"] == fails)
        for call in ["put", "put-file", "get", "get-file", "contains", "remove"] {
            #expect(calls[call] == "ok", "\(call)")
        }
        #expect(calls["leaked"] == "0")
        expectWhole(calls)
    }

    @Test func `run runs its command whatever the limit of descriptors`() throws {
        let tool = try Tool()
        for limit in 4...20 {
            let command = "run --force -- sh -c 'cat; echo ran; exit 3'"
            let run = try tool.shell("ulimit -n \(limit); \"$TOOL\" \(command)")
            #expect(run.output == "ran\n" && run.status == 3, "\(limit): \(run.output)\(run.error)")
            let lines = run.error.split(separator: "\n")
            // The message reports why the output is not stored.
            let isTold = lines.count <= 2 && lines.allSatisfy { $0.contains("ulimit -n") }
            #expect(isTold, "\(limit): \(run.error)")
            if limit < 8 { #expect(!lines.isEmpty, "\(limit)") }
        }
        let missing = try tool.shell("ulimit -n 5; \"$TOOL\" run -- /no/such/program")
        #expect(missing.status == 127 && missing.error.contains("check its name"), "\(missing.error)")
    }

    @Test func `a get without a free descriptor reports the limit`() throws {
        let tool = try Tool()
        #expect(try tool.run("put", "key", input: Data("value".utf8)).status == 0)
        for limit in 4...24 {
            let run = try tool.shell("ulimit -n \(limit); \"$TOOL\" get -o $HOME/file key")
            let isTold = run.status != 0 && run.error.contains("ulimit -n")
            #expect(run.status == 0 || isTold, "\(limit): \(run.status) \(run.error)")
        }
    }

    @Test func `a file size limit ends no command by a signal`() throws {
        let tool = try Tool()
        #expect(try tool.run("put", "old", input: Data(repeating: 1, count: 3 << 20)).status == 0)
        #expect(try tool.run("config", "set", "event-log", "64K").status == 0)
        let statuses = try tool.shell(
            """
            head -c 3000000 /dev/zero > $HOME/input
            for limit in 0 1 1000; do
                for words in "put new $HOME/input" "put piped" "put --if-absent other $HOME/input" "get old" \\
                    "get -o $HOME/output old" "rm gone" "touch old" "gc" "ls" "stats" "verify" "config set max-age 7d" \\
                    "info old" "run -- head -c 2000000 /dev/zero" "doctor"
                do
                    (ulimit -f $limit; head -c 3000000 /dev/zero | "$TOOL" $words > $HOME/out 2> $HOME/err)
                    status=$?
                    [ $status -lt 128 ] || echo "$limit $words: $status"
                done
            done
            """
        )
        #expect(statuses.status == 0 && statuses.output.isEmpty, "\(statuses.output)\(statuses.error)")
        #expect(try tool.run("verify").status == 0)
    }
}
