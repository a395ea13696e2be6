// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import Transport

/// The order in which transfers start.
@Suite(.takesTurns) struct TransferQueueTests {
    @Test func `transfers start up to the limit, plus one for each server without any`() {
        var queue = TransferQueue<Int>(limit: 2)
        let sites: [Substring] = ["slow", "slow", "slow", "slow", "a", "b", "c", "a"]
        let begun = sites.enumerated().map { queue.begin($1, $0) }
        // The transfer of "c" would exceed twice the limit.
        #expect(begun == [true, true, false, false, true, true, false, false])
        let next = queue.next()
        #expect(next == nil)
    }

    @Test func `the server with the fewest active transfers is next, then the longest waiter`() {
        var queue = TransferQueue<Int>(limit: 4)
        let sites: [Substring] = ["slow", "slow", "slow", "a", "slow", "slow", "a", "a", "a"]
        let begun = sites.enumerated().map { queue.begin($1, $0) }
        #expect(begun == [true, true, true, true, false, false, false, false, false])
        // Active transfers of "slow" and "a" after each end: 2 and 1, 1 and 2, 2 and 1, 1 and 2, 2 and 1.
        let turns: [Substring] = ["slow", "slow", "a", "slow", "a"]
        let order = turns.map { site in
            queue.end(site)
            return queue.next()
        }
        #expect(order == [6, 4, 7, 5, 8])
    }

    @Test func `beyond the limit, a server has one transfer at a time`() {
        var queue = TransferQueue<Int>(limit: 1)
        let sites: [Substring] = ["slow", "a", "a"]
        let begun = sites.enumerated().map { queue.begin($1, $0) }
        #expect(begun == [true, true, false])
        queue.end("a")
        let next = queue.next()
        queue.end("a")
        let (none, isBegun) = (queue.next(), queue.begin("a", 3))
        #expect(next == 2 && none == nil && isBegun)
    }

    @Test func `a server has no more transfers than its own limit`() {
        var queue = TransferQueue<Int>(limit: 4, perServer: 2)
        let sites: [Substring] = ["a", "a", "a", "b", "a"]
        let begun = sites.enumerated().map { queue.begin($1, $0) }
        #expect(begun == [true, true, false, true, false])
        queue.end("b")
        let none = queue.next()
        queue.end("a")
        let (next, isBegun) = (queue.next(), queue.beginIfFree("a"))
        #expect(none == nil && next == 2 && !isBegun)
    }

    @Test func `a slow server that uses all transfers does not block other servers`() async throws {
        let slow = try LoopbackServer { peer in
            peer.waitForEnd()
            return false
        }
        let servers = try (0..<3).map { _ in try LoopbackServer { $0.answer("200 OK", [], [1]) } }
        let transport = Transport(mostTransfers: 2)
        let waiting = (0..<8).map { _ in
            Task { await expectFailure(.cancelled, transport, TransportRequest(slow.url())) }
        }
        await waitUntil("all it may have are under way") { slow.requests.count == 2 }
        for _ in 0..<5 {
            for server in servers {
                #expect(try await transport.perform(TransportRequest(server.url())).body == Data([1]))
            }
        }
        #expect(slow.requests.count == 2)
        for task in waiting { task.cancel() }
        for task in waiting { #expect(await task.value != nil) }
    }
}
