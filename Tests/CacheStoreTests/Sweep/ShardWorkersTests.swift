// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct ShardWorkersTests {
    private struct Seen {
        var done: [Int] = []
        var busy: [Int: Int] = [:]
        var overlaps = 0
    }

    @Test(arguments: [1, 2, 4])
    func `each task runs once, and the tasks of a lane run one after the other`(threads: Int) throws {
        let seen = Locked<Seen>.Box(Seen())
        let lanes = (0..<400).map { $0 / 4 }
        var worker = 0
        try ShardWorkers.run(lanes, threads: threads, worker: &worker, progress: { _ in }) {
            (worker, number) in
            worker += 1
            seen.value.withLock { seen in
                seen.busy[lanes[number], default: 0] += 1
                if seen.busy[lanes[number]] != 1 { seen.overlaps += 1 }
            }
            sleepThread(for: .microseconds(200))
            seen.value.withLock { seen in
                seen.busy[lanes[number], default: 0] -= 1
                seen.done.append(number)
            }
            return true
        }
        let result = seen.value.withLock { $0 }
        #expect(result.done.sorted() == Array(0..<400))
        #expect(threads > 1 || (result.done == Array(0..<400) && worker == 400))
        #expect(result.overlaps == 0)
    }

    @Test func `no further task starts after a task returns false`() throws {
        let done = Locked<Int>.Box(0)
        var worker = 0
        try ShardWorkers.run([Int](0..<1000), threads: 2, worker: &worker, progress: { _ in }) {
            (_, number) in
            done.value.withLock { $0 += 1 }
            return number < 10
        }
        #expect(done.value.withLock { $0 } <= 12)
    }

    @Test func `an error of a task is thrown after all tasks have ended`() throws {
        let atWork = Locked<Int>.Box(0)
        var worker = 0
        #expect(throws: CacheError.self) {
            try ShardWorkers.run([Int](0..<1000), threads: 4, worker: &worker, progress: { _ in }) {
                (_, number) throws(CacheError) in
                atWork.value.withLock { $0 += 1 }
                defer { atWork.value.withLock { $0 -= 1 } }
                if number == 100 { throw CacheError(.inputOutput, to: "fail", path: "") }
                return true
            }
        }
        #expect(atWork.value.withLock { $0 } == 0)
    }

    @Test func `progress is reported only on the caller's thread`() throws {
        var told: [Int] = []
        var worker = 0
        try ShardWorkers.run([Int](0..<500), threads: 3, worker: &worker, progress: { told.append($0) }) {
            (_, _) in
            true
        }
        #expect(told == told.sorted() && told.allSatisfy { (0..<500).contains($0) })
    }
}
