// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct NetworkProgramTests {
    @Test func `it is looked for beside the program, and where it is installed`() {
        #expect(
            NetworkProgram.places(beside: "/opt/it/bin/diskcache") == [
                "/opt/it/bin/diskcache-net", "/opt/it/bin/../libexec/diskcache/diskcache-net",
            ]
        )
        #expect(NetworkProgram.places(beside: "diskcache").isEmpty)
    }

    @Test(arguments: [
        ("{\"remote\":{}}", true), ("{\"maximumSize\":1}", false), ("", false), ("\"remote", false),
        ("{\n  \"maximumSize\": 1,\n  \"remote\" : null }", true),
    ])
    func `whether a directory is shared is read off its configuration`(json: String, isShared: Bool) {
        #expect(RemoteNotice.mentionsRemote(Array(json.utf8)) == isShared)
    }

    @Test func `where there is no directory nothing is shared`() {
        #expect(!RemoteNotice.isPresent(in: "/nonexistent"))
    }

    @Test func `what needs the network says so`() {
        let names = DiskCacheTool.shown.filter { $0.needsNetwork }.map { $0.name }
        #expect(names == ["fetch", "push", "pull"])
    }
}
