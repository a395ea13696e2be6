// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Tests of processes that fork with an open cache; each checks its own expectations and reports failures.
@Suite(.takesTurns) struct ForkTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func expectSuccess(of task: String) throws {
        let run = try HostRun(task, in: directory)
        #expect(run.end == .exited(0), "\(run.errors)")
    }

    @Test func `a child gets an error from its parent's cache, and works with a cache that it opens`()
        throws
    {
        try expectSuccess(of: "fork-use")
    }

    @Test func `a child gets an error, and does not wait for its parent's put in the background`() throws {
        try expectSuccess(of: "fork-wait")
    }

    @Test func `a child that returns from its parent's computation leaves its parent's lock held`() throws {
        try expectSuccess(of: "fork-compute")
    }

    @Test func `a child computes a key that its parent is computing`() throws {
        try expectSuccess(of: "fork-ask")
    }

    @Test func `a child can't release its parent's locks, and its parent frees them for all`() throws {
        try expectSuccess(of: "fork-locks")
    }

    @Test func `a named lock that a process holds stays its own when it forks`() throws {
        try expectSuccess(of: "fork-named")
    }

    @Test func `in a child, the thread that forked can contend with others for locks`() throws {
        try expectSuccess(of: "fork-contend")
    }

    @Test func `workers that are forked before they open the cache share it`() throws {
        try expectSuccess(of: "prefork")
    }
}
