// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The time after which a test assumes that an event will never occur, however busy the machine is.
///
/// Only this timeout may make a test fail: the absence of an event for a shorter time proves nothing.
public let hangLimit: Duration = .seconds(600)

/// Waits until a condition holds; blocks the thread.
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
        // In a cancelled task, the sleep ends at once, and the condition is checked more often.
        try? await Task.sleep(for: .milliseconds(2))
    }
}

/// Returns the shortest time that `body` takes in up to 20 runs; stops after the first run that takes less than `limit`.
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

/// Checks that `body` blocks on a new thread, and returns a function that checks that `body` continues.
///
/// A `body` that has not returned after 50 ms counts as blocked, as in the tests of Go's lockedfile.
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

/// Runs `body` on `count` concurrent threads, and waits for all of them.
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
