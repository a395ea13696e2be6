// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// How long a store waits for a stripe lock.
@Suite(.takesTurns) struct StripesTests {
    private let fixture: StoreFixture
    private let digest = Digest(ofKey: "key")

    init() throws {
        fixture = try StoreFixture()
    }

    /// Starts a process that holds the stripe lock shared and then runs the script.
    private func holder(doing script: String) throws -> ChildProcess {
        let lock = "\(fixture.path)/locks/\(StoreLayout.lockName(.entries, digest.stripe))"
        let holder = try ChildProcess(
            starting: "/usr/bin/flock",
            ["--shared", "--no-fork", lock, "sh", "-c", "echo held; \(script)"]
        )
        #expect(try holder.output.readAvailable() == Array("held\n".utf8))
        return holder
    }

    private func timeUntilBusy(_ patience: Duration) throws -> Duration {
        // A new store each time, as a store waits less after an unsuccessful wait.
        let store = try StoreFixture.open(fixture.path)
        let start = ContinuousClock.now
        #expect {
            try store.entries.stripes.lock(.exclusive, stripe: digest.stripe, patience: patience).release()
        } throws: {
            ($0 as? CacheError)?.code == .busy
        }
        return .now - start
    }

    @Test func `a stripe's waiter waits ten times as long for a runnable holder as for a sleeping one`()
        throws
    {
        let patience = Duration.milliseconds(100)
        var sleeping = try holder(doing: "exec sleep 1000")
        let time = try shortestTime(below: patience * 5) { _ = try timeUntilBusy(patience) }
        #expect(time < patience * 5)
        sleeping.send(.kill)
        _ = try sleeping.wait()
        // It ends with the tests, even if they are killed.
        var running = try holder(doing: "while kill -0 $PPID; do :; done")
        #expect(try timeUntilBusy(patience) >= patience * 10)
        running.send(.stop)
        let stoppedTime = try shortestTime(below: patience * 5) { _ = try timeUntilBusy(patience) }
        #expect(stoppedTime < patience * 5)
        running.send(.kill)
        _ = try running.wait()
    }
}
