// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct FlightTableTests {
    let key = FlightKey(digest: Digest(ofKey: "key"), form: ObjectIdentifier(Data.self))
    let other = FlightKey(digest: Digest(ofKey: "key"), form: ObjectIdentifier(String.self))
    var table = FlightTable<String>()

    @Test mutating func `the first leads, the others wait, and all get its value`() {
        #expect(table.enter(key, "a") == .lead)
        #expect(table.enter(key, "b") == .wait(1))
        #expect(table.enter(key, "c") == .wait(2))
        #expect(table.enter(other, "d") == .lead)
        #expect(table.end(key).sorted() == ["b", "c"])
        #expect(table.count == 1)
        #expect(table.enter(key, "e") == .lead)
    }

    @Test mutating func `a failure passes the lead to who has waited longest, one at a time`() {
        for seat in ["a", "b", "c"] { _ = table.enter(key, seat) }
        #expect(table.handOver(key) == "b")
        #expect(table.enter(key, "d") == .wait(3))
        #expect(table.handOver(key) == "c")
        #expect(table.handOver(key) == "d")
        #expect(table.handOver(key) == nil)
        #expect(table.count == 0)
    }

    @Test mutating func `who leaves is forgotten`() {
        for seat in ["a", "b", "c"] { _ = table.enter(key, seat) }
        table.leave(key, 1)
        #expect(table.waiting == 1)
        #expect(table.end(key) == ["c"])
        table.leave(key, 2)
        #expect(table.count == 0)
    }

    @Test mutating func `a refresh begins only where nothing is under way`() {
        let isFirst = table.begin(key)
        let isSecond = table.begin(key)
        #expect(isFirst && !isSecond)
        #expect(table.enter(key, "a") == .wait(1))
    }
}

@Suite(.takesTurns) struct FlightSeatTests {
    @Test func `what settles it first counts, before the waiting and during it`() async {
        let seat = FlightSeat<Int>()
        #expect(seat.settle(.value(1)))
        #expect(!seat.settle(.value(2)))
        #expect(!seat.giveLead())
        guard case .value(1) = await seat.wait(until: nil) else {
            Issue.record("another outcome")
            return
        }
    }

    @Test func `a task that was cancelled before does not wait`() async {
        let seat = FlightSeat<Int>()
        let task = Task { await seat.wait(until: nil) }
        task.cancel()
        guard case .cancelled = await task.value else {
            Issue.record("another outcome")
            return
        }
        #expect(!seat.giveLead(), "the lead must go to somebody who takes it")
    }

    @Test func `a deadline ends the waiting of tasks and threads`() async {
        let seats = [FlightSeat<Int>(), FlightSeat<Int>()]
        guard case .timedOut = await seats[0].wait(until: .now + .milliseconds(5)),
            case .timedOut = await offload({ seats[1].wait(until: .now + .milliseconds(5)) })
        else {
            Issue.record("another outcome")
            return
        }
    }
}
