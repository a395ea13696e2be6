// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The time after which a test considers an event as never happening, on however busy a machine.
///
/// This is the only timeout after which a test may fail. Any shorter delay proves nothing.
public let hangLimit: Duration = .seconds(600)

/// Waits until a condition holds, on a thread that may block.
public func waitUntil(
    _ what: Comment,
    sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () throws -> Bool
) rethrows {
    let end = ContinuousClock.now + hangLimit
    while try !condition() {
        guard ContinuousClock.now < end else {
            Issue.record(what, sourceLocation: sourceLocation)
            return
        }
        Thread.sleep(forTimeInterval: 0.002)
    }
}

/// Waits until a condition holds, without blocking a thread.
public func waitUntil(
    _ what: Comment,
    sourceLocation: SourceLocation = #_sourceLocation,
    isolation: isolated (any Actor)? = #isolation,
    _ condition: () throws -> Bool
) async rethrows {
    let end = ContinuousClock.now + hangLimit
    while try !condition() {
        guard ContinuousClock.now < end else {
            Issue.record(what, sourceLocation: sourceLocation)
            return
        }
        // The sleep of a cancelled task ends at once, so it checks the condition more often.
        try? await Task.sleep(for: .milliseconds(2))
    }
}

/// Returns the shortest time that `body` takes in up to 20 runs, of which the first below `limit` is the last.
///
/// Code that itself waits for `limit` does so in every run; code that only waits for a processor does not.
public func shortestTime<Failure: Error>(
    below limit: Duration,
    _ body: () throws(Failure) -> Void
) throws(Failure) -> Duration {
    var shortest = hangLimit
    for _ in 0..<20 where shortest >= limit {
        let start = ContinuousClock.now
        try body()
        shortest = min(shortest, ContinuousClock.now - start)
    }
    return shortest
}

/// Checks that `body` blocks on a new thread, and returns a function that checks that it continues.
///
/// As in the tests of Go's lockedfile, a `body` that has not returned after 50 ms counts as blocked.
public func expectBlocks(_ body: @escaping @Sendable () -> Void) -> () -> Void {
    let end = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        body()
        end.signal()
    }
    #expect(end.wait(timeout: .now() + 0.05) == .timedOut, "it did not wait")
    let limit = DispatchTimeInterval.seconds(Int(hangLimit.components.seconds))
    return { #expect(end.wait(timeout: .now() + limit) == .success, "it did not go on") }
}

/// Runs `body` on `count` threads at once and waits for all of them.
public func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let group = DispatchGroup()
    for index in 0..<count {
        group.enter()
        Thread.detachNewThread {
            body(index)
            group.leave()
        }
    }
    group.wait()
}
