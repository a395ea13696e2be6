// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests of the commands with remote servers: two directories stand for two machines, and a server runs on loopback.
@Suite(
    .takesTurns,
    .enabled(if: OriginServer.isPossible, "there is no python3 or no libcurl.so.4: nothing is shared")
)
struct RemoteCommandTests {
    let tool: Tool

    init() throws {
        tool = try Tool()
    }

    /// Runs a script in which `here` and `there` are the command on this machine and on another one.
    func sharing(_ script: String) throws -> Tool.Run {
        try OriginServer(tool: tool).run(
            """
            here() { "$TOOL" --dir '\(tool.path("here"))' "$@"; }
            there() { "$TOOL" --dir '\(tool.path("there"))' "$@"; }
            for machine in here there; do $machine config set remote.servers "$ORIGIN/store"; done
            \(script)
            """
        )
    }

    @Test func `a value that is put on one machine is found on the other`() throws {
        let run = try sharing(
            """
            echo hello | here put k --ttl 1h --tag t
            there has k; echo $?
            there get k
            there has k; echo $?
            there info k --json | grep -c '"tags":\\["t"\\]'
            """
        )
        #expect(run.lines == ["1", "hello", "0", "1"], "\(run.output)\(run.error)")
        #expect(run.errorData.isEmpty, "\(run.error)")
    }

    @Test func `a key that is removed on one machine is a miss on the other`() throws {
        let run = try sharing(
            """
            echo hello | here put k; here rm k
            there get k; echo $?
            """
        )
        #expect(run.lines == ["1"] && run.errorData.isEmpty, "\(run.output)\(run.error)")
    }

    @Test func `a command runs once for all machines`() throws {
        let marks = tool.path("marks")
        let run = try sharing(
            """
            for machine in here there; do $machine run -- sh -c 'echo x >> \(marks); echo ran'; done
            wc -l < '\(marks)'
            """
        )
        #expect(run.lines.map { $0.filter { $0 != " " } } == ["ran", "ran", "1"], "\(run.error)")
    }

    @Test func `push sends existing values, and pull fetches them by prefix`() throws {
        let run = try sharing(
            """
            here config set remote.mode off
            for key in a/1 a/2 b/1; do echo $key | here put $key; done
            here config set remote.mode readWrite
            here push --prefix a/ && there pull --prefix a/ --json
            stop
            there get a/1 && there get a/2; there get b/1; echo $?
            """
        )
        #expect(run.output.hasPrefix("pushed 3 keys, "), "\(run.output)\(run.error)")
        #expect(run.output.contains("\"keys\":2") && run.output.contains("\"missing\":0"), "\(run.output)")
        #expect(run.lines.suffix(3) == ["a/1", "a/2", "1"], "\(run.output)\(run.error)")
    }

    @Test func `push and pull exit with 1 if no machine has the value`() throws {
        let run = try sharing(
            """
            there pull k; echo $?
            here push k; echo $?
            there pull --tag t; echo $?
            """
        )
        #expect(run.lines.filter { Int($0) != nil } == ["1", "1", "1"], "\(run.output)\(run.error)")
    }

    @Test func `a server that is down fails no put, get or run`() throws {
        let run = try sharing(
            """
            stop
            echo hello | here put k && here get k
            there get k; echo $?
            there run -- echo ran
            here doctor --remote >/dev/null; echo $?
            """
        )
        #expect(run.lines == ["hello", "1", "ran", "78"], "\(run.output)\(run.error)")
        #expect(run.errorData.isEmpty, "\(run.error)")
    }

    @Test func `push sends a value that was put while the server was down`() throws {
        let run = try sharing(
            """
            here config set remote.servers http://127.0.0.1:1/store
            echo hello | here put k
            here config set remote.servers "$ORIGIN/store"
            here push && there get k
            """
        )
        #expect(run.lines.last == "hello", "\(run.output)\(run.error)")
    }

    @Test func `doctor --remote reports each check of a working server`() throws {
        let run = try sharing("here doctor --remote --json")
        let findings = try #require(try json(run)["findings"] as? [[String: Any]])
        let about = findings.filter { ($0["subject"] as? String)?.hasPrefix("http://127.0.0.1") == true }
        let states = about.compactMap { $0["state"] as? String }
        #expect(about.allSatisfy { $0["level"] as? String == "fine" }, "\(run.output)")
        for word in ["answers in", "can store", "can return", "can remove", "its clock agrees"] {
            #expect(states.contains { $0.hasPrefix(word) }, "\(word): \(states)")
        }
    }

    @Test func `stats reports the remote traffic in both directions`() throws {
        let run = try sharing(
            """
            echo hello | here put k; there get k >/dev/null
            here stats --quick; there stats --quick
            """
        )
        #expect(run.output.contains("  not sent yet"), "\(run.output)")
        #expect(run.output.contains("remote hits") && run.output.contains("remote writes"))
        #expect(run.output.contains("/store") && run.output.contains("in use"), "\(run.output)")
    }

    @Test func `stats --watch reports the servers, too`() throws {
        let output = tool.path("watch")
        let run = try sharing(
            """
            echo hello | here put k
            "$TOOL" --dir '\(tool.path("here"))' stats --watch=100ms --json > '\(output)' & WATCH=$!
            for i in $(seq 6000); do [ $(wc -l < '\(output)') -ge 2 ] && break; sleep 0.01; done
            kill -TERM $WATCH; wait $WATCH; echo $?
            """
        )
        #expect(run.lines == ["143"], "\(run.output)\(run.error)")
        let lines = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
        #expect(lines.count >= 2)
        for line in lines {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            let remote = object?["remote"] as? [String: Any]
            let servers = remote?["servers"] as? [[String: Any]]
            #expect((servers?.first?["name"] as? String)?.hasSuffix("/store") == true, "\(line)")
            #expect(servers?.first?["breaker"] as? String == "closed" && remote?["waiting"] as? Int == 0)
        }
    }

    @Test func `without diskcache-net the cache works locally, and push fails`() throws {
        let alone = tool.path("alone")
        let run = try sharing(
            """
            mkdir '\(alone)' && cp "$TOOL" '\(alone)/diskcache' && TOOL='\(alone)/diskcache'
            echo hello | here put k && here get k; there get k; echo $?
            here doctor | grep -c 'diskcache-net is not installed'
            here push; echo $?
            """
        )
        #expect(run.lines == ["hello", "1", "1", "69"], "\(run.output)\(run.error)")
        #expect(run.error.split(separator: "\n").count == 1, "\(run.error)")
    }

    // MARK: Settings

    @Test func `remote settings can be set, shown, read and unset`() throws {
        for (name, value) in [
            ("servers", "redis://a:6379/0;http://b:8080/,http://c:8080/"), ("mode", "read"),
            ("limit", "1h"), ("limit", "100ms"), ("namespace", "team"), ("maximumSize", "1M"),
            ("tags", "x,y"), ("credentials", "/etc/it"),
        ] {
            let run = try tool.run("config", "set", "remote.\(name)", value)
            #expect(run.status == 0 && run.outputData.isEmpty && run.errorData.isEmpty, "\(run.error)")
        }
        let shown = try tool.run("config").output
        #expect(shown.contains("100ms") && shown.contains("1.0 MiB"), "\(shown)")
        let servers = "redis://a:6379/0;http://b:8080/,http://c:8080/"
        #expect(try tool.run("config", "get", "remote.servers").output == servers + "\n")
        let remote = try #require(try json(tool.run("config", "--json"))["remote"] as? [String: Any])
        #expect((remote["levels"] as? [[[String: Any]]])?.map(\.count) == [1, 2])
        #expect(remote["mode"] as? String == "read" && remote["limit"] as? String == "100ms")
        #expect(try tool.run("config", "unset", "remote.limit").status == 0)
        #expect(try tool.run("config", "get", "remote.limit").status == 1)
        #expect(try tool.run("config", "set", "max-size", "256M").status == 0)
        #expect(try tool.run("config", "get", "remote.namespace").output == "team\n")
        for name in ["servers", "mode", "namespace", "maximumSize", "tags", "credentials"] {
            #expect(try tool.run("config", "unset", "remote.\(name)").status == 0)
        }
        let json = try String(contentsOfFile: tool.directory + "/config.json", encoding: .utf8)
        #expect(!json.contains("remote"), "\(json)")
    }

    @Test func `invalid settings in the file can be corrected one by one`() throws {
        #expect(try tool.run("config", "set", "remote.namespace", "team").status == 0)
        let text =
            #"{"remote": {"servers": [{"url": "http://a:0/"}], "namespace": "..", "limit": "3600000ms"}}"#
        try text.write(toFile: tool.directory + "/config.json", atomically: false, encoding: .utf8)
        #expect(try tool.run("config", "get", "remote.servers").status == 78)
        #expect(try tool.run("config", "set", "remote.servers", "http://a:1/").status == 0)
        #expect(try tool.run("config", "unset", "remote.namespace").status == 0)
        #expect(try tool.run("config", "get", "remote.servers").output == "http://a:1/\n")
        #expect(try tool.run("config", "get", "remote.limit").status == 0)
    }

    @Test(arguments: [
        ["servers", ""], ["servers", "cache:8080"], ["servers", "ftp://x/"],
        ["servers", "http://me:s3cr3t@x/"], ["servers", "ftp://me:s3cr3t@x/"],
        ["servers", "http://x:70000/"],
        ["servers", "redis://x/y"], ["servers", ","], ["tags", ","], ["namespace", ".."], ["limit", "2h"],
        ["path", "{digest}/.."],
        ["mode", "write"], ["limit", "0"], ["limit", "soon"], ["namespace", "a/b"], ["path", "{kind}"],
        ["maximumSize", "much"], ["credentials", "file"], ["nothing", "1"],
    ])
    func `an invalid setting is refused in one line, and no directory is created`(words: [String]) throws {
        let run = try tool.run("config", "set", "remote.\(words[0])", words[1])
        #expect(run.status == 64 && run.error.split(separator: "\n").count == 1, "\(run.error)")
        #expect(!run.error.contains("s3cr3t"))
        #expect(!FileManager.default.fileExists(atPath: tool.directory))
    }
}
