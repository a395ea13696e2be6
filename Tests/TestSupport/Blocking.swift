// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Proves that `body`, started on a thread, waits for something; what it returns proves that it goes on.
///
/// As Go's lockedfile tests do it: 50 ms without an end count as waiting, ten seconds as a hang.
public func expectBlocks(_ body: @escaping @Sendable () -> Void) -> () -> Void {
    let end = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        body()
        end.signal()
    }
    #expect(end.wait(timeout: .now() + 0.05) == .timedOut, "it did not wait")
    return { #expect(end.wait(timeout: .now() + 10) == .success, "it did not go on") }
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
