// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct InFlightTableTests {
    let key = FlightKey(digest: Digest(ofKey: "key"), form: MemoryEntry.bytes)
    let other = FlightKey(digest: Digest(ofKey: "key"), form: ObjectIdentifier(String.self))
    var table = InFlightTable<String>()

    @Test mutating func `the first caller leads, and the others wait and get its value`() {
        #expect(table.enter(key, "a") == nil)
        #expect(table.enter(key, "b") == 1)
        #expect(table.enter(key, "c") == 2)
        #expect(table.enter(other, "d") == nil)
        table.close(key)
        #expect(table.takeOnTime(key).sorted() == ["b", "c"])
        #expect(table.handOver(key) == nil)
        #expect(table.count == 1)
        #expect(table.enter(key, "e") == nil)
    }

    @Test mutating func `callers after the close do not get its value, and the first of them leads next`() {
        for seat in ["a", "b"] { _ = table.enter(key, seat) }
        table.close(key)
        for seat in ["c", "d"] { #expect(table.enter(key, seat) != nil) }
        #expect(table.takeOnTime(key) == ["b"])
        #expect(table.enter(key, "e") == 4, "it goes on")
        #expect(table.handOver(key) == "c")
        #expect(table.takeOnTime(key).isEmpty, "that one has not closed it")
        table.close(key)
        #expect(table.takeOnTime(key).sorted() == ["d", "e"])
        #expect(table.handOver(key) == nil)
        #expect(table.count == 0)
    }

    @Test mutating func `a second close includes the callers that entered after the first`() {
        for seat in ["a", "b"] { _ = table.enter(key, seat) }
        table.close(key)
        _ = table.enter(key, "c")
        table.close(key)
        _ = table.enter(key, "d")
        #expect(table.takeOnTime(key).sorted() == ["b", "c"])
        #expect(table.handOver(key) == "d")
    }

    @Test mutating func `a flight that was not closed gives its value to no waiter`() {
        for seat in ["a", "b"] { _ = table.enter(key, seat) }
        #expect(table.takeOnTime(key).isEmpty)
        #expect(table.handOver(key) == "b")
        #expect(table.takeOnTime(other).isEmpty)
        table.close(other)
        #expect(table.count == 1, "a flight that is none is not begun by closing it")
    }

    @Test mutating func `a failure passes the lead to the longest waiter, one at a time`() {
        for seat in ["a", "b", "c"] { _ = table.enter(key, seat) }
        #expect(table.handOver(key) == "b")
        #expect(table.enter(key, "d") == 3)
        #expect(table.handOver(key) == "c")
        #expect(table.handOver(key) == "d")
        #expect(table.handOver(key) == nil)
        #expect(table.count == 0)
    }

    @Test mutating func `a waiter that leaves gets neither the value nor the lead`() {
        for seat in ["a", "b", "c"] { _ = table.enter(key, seat) }
        table.leave(key, 1)
        #expect(table.waiting == 1)
        table.close(key)
        #expect(table.takeOnTime(key) == ["c"])
        #expect(table.handOver(key) == nil)
        table.leave(key, 2)
        #expect(table.count == 0)
    }

    @Test mutating func `a refresh begins only if no flight is in progress`() {
        let isFirst = table.begin(key)
        let isSecond = table.begin(key)
        #expect(isFirst && !isSecond)
        #expect(table.enter(key, "a") == 1)
    }
}

@Suite(.takesTurns) struct FlightSeatTests {
    @Test func `only the first settlement of a seat counts`() async {
        let seat = FlightWaiter()
        #expect(seat.settle(.value(1)))
        #expect(!seat.settle(.value(2)))
        #expect(!seat.settle(.lead))
        guard case .value(let value) = await seat.wait(until: nil) else {
            Issue.record("another outcome")
            return
        }
        #expect(value as? Int == 1)
    }

    @Test func `settling a seat wakes a waiting thread`() async {
        let seat = FlightWaiter()
        let task = Task { await offload { seat.wait(until: nil) } }
        seat.settle(.lead)
        guard case .lead = await task.value else {
            Issue.record("another outcome")
            return
        }
    }

    @Test func `a cancelled task does not wait, and its seat cannot be settled`() async {
        let seat = FlightWaiter()
        let task = Task { await seat.wait(until: nil) }
        task.cancel()
        guard case .cancelled = await task.value else {
            Issue.record("another outcome")
            return
        }
        #expect(!seat.settle(.lead), "the lead must go to somebody who takes it")
    }

    @Test func `a deadline ends the wait of tasks and threads`() async {
        let seats = [FlightWaiter(), FlightWaiter()]
        guard case .timedOut = await seats[0].wait(until: .now + .milliseconds(5)),
            case .timedOut = await offload({ seats[1].wait(until: .now + .milliseconds(5)) })
        else {
            Issue.record("another outcome")
            return
        }
    }
}
