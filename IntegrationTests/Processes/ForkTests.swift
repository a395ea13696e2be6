// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

/// Processes that fork with a cache open; each says itself what is not as it should be.
@Suite(.takesTurns) struct ForkTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func expectSuccess(of task: String) throws {
        let run = try HostRun(task, in: directory)
        #expect(run.end == .exited(0), "\(run.errors)")
    }

    @Test func `a child gets an error from its parent's cache, and works with one that it opens itself`()
        throws
    {
        try expectSuccess(of: "fork-use")
    }

    @Test func `a child does not wait for what its parent has to publish`() throws {
        try expectSuccess(of: "fork-wait")
    }

    @Test func `a child that returns from its parent's computation leaves its parent's lock alone`() throws {
        try expectSuccess(of: "fork-compute")
    }

    @Test func `a child that asks for what its parent is computing computes it`() throws {
        try expectSuccess(of: "fork-ask")
    }

    @Test func `what a child lets go of stays its parent's, and what its parent lets go of is free`() throws {
        try expectSuccess(of: "fork-locks")
    }

    @Test func `a lock that a process holds by a name stays its own when it forks`() throws {
        try expectSuccess(of: "fork-named")
    }

    @Test func `in a child the thread that forked may wait for others, and others for it`() throws {
        try expectSuccess(of: "fork-contend")
    }

    @Test func `workers that are forked first and open the cache then share it`() throws {
        try expectSuccess(of: "prefork")
    }
}
