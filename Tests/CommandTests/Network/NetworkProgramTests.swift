// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheCommand

@Suite(.takesTurns) struct NetworkProgramTests {
    @Test func `the network program is searched for next to the tool and in libexec`() {
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
    func `the configuration shows whether a directory is shared`(json: String, isShared: Bool) {
        #expect(RemoteNotice.mentionsRemote(Array(json.utf8)) == isShared)
    }

    @Test func `a missing directory is not shared`() {
        #expect(!RemoteNotice.isPresent(in: "/nonexistent"))
    }
}
