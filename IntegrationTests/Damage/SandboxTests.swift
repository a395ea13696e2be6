// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// The error of a sandbox for system calls that it does not allow.
struct Refusal: Sendable, CustomTestStringConvertible {
    let errno: Int32
    let name: String

    static let permission = Refusal(errno: EPERM, name: "EPERM")
    static let access = Refusal(errno: EACCES, name: "EACCES")
    static let support = Refusal(errno: ENOTSUP, name: "ENOTSUP")
    static let system = Refusal(errno: ENOSYS, name: "ENOSYS")
    static let argument = Refusal(errno: EINVAL, name: "EINVAL")

    var testDescription: String { name }
}

extension Tool {
    /// Runs `diskcache` with the system calls `calls` failing, for at most a minute.
    func run(refusing calls: [String], _ refusal: Refusal, _ arguments: [String], input: String = "") throws
        -> Run
    {
        let probe = URL(fileURLWithPath: Tool.path).deletingLastPathComponent().appendingPathComponent(
            "SandboxProbe"
        )
        let words =
            ["60", probe.path, "\(refusal.errno)", calls.joined(separator: ","), Tool.path] + arguments
        let quoted = words.map { "'" + $0.replacing("'", with: "'\\''") + "'" }
        return try shell("exec timeout -s KILL " + quoted.joined(separator: " "), input: Data(input.utf8))
    }
}

/// Tests of processes that may not use extended attributes, beside others that may.
@Suite(.takesTurns) struct SandboxTests {
    private static let refusals: [Refusal] = [.permission, .access, .support, .system, .argument]
    private static let reading = ["getxattr", "lgetxattr", "fgetxattr", "getxattrat"]
    private static let setting = [
        "setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "fremovexattr", "removexattrat",
    ]

    private let tool: Tool
    private let keys = ["key 0", "key 1"]

    init() throws {
        tool = try Tool()
    }

    private func fill() throws {
        for key in keys { #expect(try tool.run("put", key, input: Data("value of \(key)".utf8)).status == 0) }
    }

    private func expectWhole() throws {
        for key in keys {
            let run = try tool.run("get", key)
            #expect(run.output == "value of \(key)" && run.status == 0, "\(key): \(run.error)")
        }
        #expect(try tool.run("verify").status == 0)
        let run = try tool.run("gc", "--json")
        let report = try JSONSerialization.jsonObject(with: run.outputData) as? [String: Any]
        #expect((report?["entries"] as? [String: Any])?["count"] as? Int == keys.count)
    }

    @Test(arguments: refusals)
    func `without access to attributes a cache that has them can't be opened, and nothing is deleted`(
        refusal: Refusal
    ) throws {
        try fill()
        let commands = [
            ["put", "key 0"], ["get", "key 0"], ["has", "key 0"], ["rm", "key 0"], ["touch", "key 0"],
            ["incr", "n"],
            ["ls"], ["info", "key 0"], ["gc"], ["gc", "--max-entries", "1"], ["gc", "--dry-run"], ["stats"],
            ["verify"], ["verify", "--repair"], ["doctor"], ["clear", "--yes"], ["lock", "l", "--", "true"],
        ]
        let isPermission = refusal.errno == EPERM || refusal.errno == EACCES
        for command in commands {
            let run = try tool.run(refusing: Self.reading + Self.setting, refusal, command, input: "new")
            #expect(run.status == (isPermission ? 77 : 74), "\(command): \(run.output)")
            #expect(run.error.contains("its metadata is in extended attributes"), "\(command): \(run.error)")
            #expect(run.error.split(separator: "\n").count == 1)
        }
        // `run` executes its command anyway.
        let run = try tool.run(refusing: Self.reading + Self.setting, refusal, ["run", "--", "echo", "ran"])
        #expect(run.status == 0 && run.output == "ran\n")
        try expectWhole()
    }

    @Test(arguments: refusals)
    func `a cache that was created without attributes works for unconfined processes`(refusal: Refusal) throws
    {
        func confined(_ words: String..., input: String = "") throws -> String {
            let run = try tool.run(refusing: Self.reading + Self.setting, refusal, words, input: input)
            #expect(run.status == 0, "\(words): \(run.error)")
            return run.output
        }
        func free(_ words: String..., input: String = "") throws -> String {
            let run = try tool.run(words, input: Data(input.utf8))
            #expect(run.status == 0, "\(words): \(run.error)")
            return run.output
        }
        _ = try confined("put", "key", input: "one")
        #expect(try free("get", "key") == "one")
        _ = try free("put", "key", input: "two")
        #expect(try confined("get", "key") == "two")
        _ = try confined("put", "key", input: "three")
        #expect(try free("get", "key") == "three")
        #expect(
            try [confined("incr", "n"), free("incr", "n"), confined("incr", "n")] == ["1\n", "2\n", "3\n"]
        )
        for collect in [{ try free("gc") }, { try confined("gc") }] {
            _ = try collect()
            #expect(try free("ls").split(separator: "\n").sorted() == ["key", "n"])
        }
        _ = try [free("verify"), confined("verify")]
    }

    @Test(arguments: refusals)
    func `a process that can set but not read attributes treats no entry as missing`(refusal: Refusal)
        throws
    {
        try fill()
        for command in [
            ["get", "key 0"], ["incr", "key 0"], ["gc"], ["gc", "--max-entries", "1"],
            ["verify", "--repair"],
        ] {
            let run = try tool.run(refusing: Self.reading, refusal, command)
            #expect(
                run.status != 0 || run.output.contains("skipped (can't be read or removed)"),
                "\(command): \(run.error)"
            )
            #expect(![1, 70].contains(run.status) && run.status < 128, "\(command): \(run.error)")
        }
        try expectWhole()
    }

    @Test(arguments: refusals)
    func `a process that can't set attributes stores values that all others find`(refusal: Refusal) throws {
        try fill()
        for key in keys + ["new"] {
            let run = try tool.run(refusing: Self.setting, refusal, ["put", key], input: "changed")
            #expect(run.status == 0, "\(key): \(run.error)")
            #expect(try tool.run("get", key).output == "changed")
        }
        for key in keys {
            #expect(try tool.run("put", key, input: Data("value of \(key)".utf8)).status == 0)
            let run = try tool.run(refusing: Self.setting, refusal, ["get", key])
            #expect(run.output == "value of \(key)")
        }
        #expect(try tool.run("rm", "new").status == 0)
        #expect(try tool.run(refusing: Self.setting, refusal, ["gc"]).status == 0)
        try expectWhole()
    }

    /// Whether the kernel has Landlock, and lets this process use it.
    static let canForbidMoves: Bool = {
        do {
            let run = try Tool().run(refusing: ["between-directories"], .permission, ["--version"])
            return run.status == 0
        } catch {
            return false
        }
    }()

    @Test(
        .enabled(if: SandboxTests.canForbidMoves, "no Landlock here"),
        arguments: ["between-directories", "linkat"]
    )
    func `a cache can be created and used if no file can be moved or linked`(refused: String) throws {
        let errors: [Refusal] =
            refused == "linkat" ? Self.refusals.filter { $0.errno != EACCES } : [.permission]
        for refusal in errors {
            let tool = try Tool()
            let large = String(repeating: "large ", count: 50_000)
            func run(_ words: [String], input: String = "") throws -> String {
                let run = try tool.run(refusing: [refused], refusal, words, input: input)
                #expect(run.status == 0, "\(refusal.name) \(words): \(run.error)")
                return run.output
            }
            for value in ["one", large, "two"] {
                _ = try run(["put", "key"], input: value)
                #expect(try run(["get", "key"]) == value)
            }
            #expect(try run(["config", "set", "max-size", "20M"]).isEmpty)
            // A value whose metadata does not fit into an attribute.
            let tags = (0..<200).flatMap { ["--tag", "tag number \($0) of many"] }
            _ = try run(["put", "tagged"] + tags, input: large)
            _ = try run(["put", "tagged"] + tags, input: "small")
            #expect(try run(["get", "tagged"]) == "small")
            #expect(try run(["run", "--", "echo", "ran"]) == "ran\n")
            // A put that replaces a damaged object.
            let object = try #require(
                tool.files("objects").map { "\(tool.directory)/objects/\($0)" }.first {
                    FileManager.default.contents(atPath: $0) == Data("two".utf8)
                }
            )
            makeFile(object, "damaged")
            _ = try run(["put", "key"], input: "two")
            #expect(try run(["get", "key"]) == "two")
            _ = try run(["gc"])
            #expect(try tool.run("get", "key").output == "two")
            #expect(try tool.run("verify").status == 0)
            #expect(tool.files().contains("config.json"))
            #expect(!tool.files().contains { $0.contains("put-") }, "\(tool.files())")
        }
    }

    @Test
    func `a collection deletes the copies that a killed process has left in the directories of its targets`()
        throws
    {
        try fill()
        let shard = try #require(tool.files("entries").first).prefix(2)
        for folder in ["", "entries/\(shard)/"] { makeFile("\(tool.directory)/\(folder)put-left0", "copy") }
        let run = try tool.run("gc", "--json")
        let report = try JSONSerialization.jsonObject(with: run.outputData) as? [String: Any]
        #expect(report?["unrecognised"] as? [String] == [])
        #expect(!tool.files().contains { $0.contains("put-") }, "\(tool.files())")
        try expectWhole()
    }

    @Test(arguments: [
        ("signalfd4", "serve", "receive signals"), ("pipe2", "serve", "receive signals"),
        ("poll", "serve", "read standard input"), ("signalfd4", "run", "read the command's output"),
        ("poll", "run", "wait for the command and its output"),
        ("wait4", "run", "wait for the command and its output"),
    ])
    func `a message names the failed step, and its advice does not need the same system call`(
        refused: String,
        command: String,
        doing: String
    ) throws {
        try fill()
        let words = command == "run" ? ["run", "--key", "r", "--", "echo", "ran"] : [command]
        let run = try tool.run(refusing: [refused], .permission, words)
        let what = "\(run.status) \(run.error)"
        #expect(run.error.contains("\(doing): Operation not permitted (EPERM): "), "\(what)")
        #expect(run.status == 0 || run.status == 74, "\(what)")
        for wrong in ["doctor", "write the output", "ulimit"] {
            #expect(!run.error.contains(wrong), "\(what)")
        }
    }

    /// `serve` forwards the signal to itself through a pipe.
    @Test func `a signal ends serve even if it can't write`() throws {
        try fill()
        let probe = URL(fileURLWithPath: Tool.path).deletingLastPathComponent()
        let script = """
            mkfifo "$HOME/requests" && exec 9<>"$HOME/requests"
            '\(probe.path)/SandboxProbe' 1 write "$TOOL" serve <&9 & server=$!
            # One waits for signals, and one passes them on.
            for _ in $(seq 1000); do [ "$(ls /proc/$server/task | wc -l)" -ge 3 ] && break; sleep 0.05; done
            kill -TERM $server; wait $server; echo $?
            """
        let run = try tool.shell(script)
        #expect(run.lines == ["143"], "\(run.error)")
    }

    @Test(.enabled(if: getuid() == 0, "needs to mount"))
    func `the error message reports that the inodes are used up`() throws {
        let mount = try Mount("tmpfs", options: "size=64m,nr_inodes=900")
        let script = """
            export DISKCACHE_DIR='\(mount.path)/cache'
            printf x | "$TOOL" put first || exit 99
            cd '\(mount.path)' && i=0 && while : > "f$i"; do i=$((i + 1)); done 2>/dev/null
            head -c 100000 /dev/urandom | "$TOOL" put second
            """
        let run = try tool.shell(script)
        #expect(
            run.status == 73 && run.error.contains("no free inodes"),
            "\(run.status) \(run.error)"
        )
    }

    @Test func `a pipe in place of the configuration blocks no command`() throws {
        try fill()
        try #require(mkfifo(tool.directory + "/config.json", 0o600) == 0)
        for command in [
            ["put", "new"], ["get", "key 0"], ["has", "key 0"], ["stats"], ["run", "--", "echo", "ran"],
        ] {
            let words = command.map { "'\($0)'" }.joined(separator: " ")
            let run = try tool.shell("timeout -s KILL 60 \"$TOOL\" \(words) </dev/null")
            // Nothing is stored while the limits are unknown.
            #expect(run.status == (command[0] == "put" ? 78 : 0), "\(command): \(run.error)")
        }
    }

    @Test func `fetch fails at once if no thread can be created`() throws {
        let words = ["fetch", "--time-limit", "1h", "http://127.0.0.1:1/"]
        let run = try tool.run(refusing: ["clone", "clone3"], Refusal(errno: EAGAIN, name: "EAGAIN"), words)
        #expect(run.status == 69 && run.error.contains("a thread can't be created"), "\(run.error)")
    }
}
