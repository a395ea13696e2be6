// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What has not happened after so long never will: no machine is so busy.
///
/// The only time that a test may wait for and then fail. Whatever else took longer than expected has shown nothing.
public let hangLimit: Duration = .seconds(600)

/// Waits, on a thread that may block, until something is so.
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

/// Waits until something is so, and blocks no thread.
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
        // A cancelled task asks more often.
        try? await Task.sleep(for: .milliseconds(2))
    }
}

/// How long `body` takes, at its quickest: it is tried again, up to 20 times, until it takes less than `limit`.
///
/// What waits for `limit` by itself does so each time; what only has to wait for a processor does not.
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

/// Proves that `body`, started on a thread, waits for something; what it returns proves that it goes on.
///
/// As Go's lockedfile tests do it: 50 ms without an end count as waiting.
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
