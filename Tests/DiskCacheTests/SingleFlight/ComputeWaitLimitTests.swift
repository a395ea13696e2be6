// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct ComputeWaitLimitTests {
    let fixture: ComputeFixture
    var cache: SharedCache { fixture.cache }
    let limit = Duration.milliseconds(300)
    var brief: ReadOptions { ReadOptions(waitLimit: limit) }

    init() throws {
        fixture = try ComputeFixture()
    }

    /// Somebody who computes until the gate is opened.
    func slow(_ gate: Gate) async throws -> Task<String, Never> {
        let task = Task { [cache, fixture] in
            await cache.value(forKey: "key", orCompute: fixture.compute("slow", gate)).text
        }
        try await eventually("it computes") { gate.count == 1 }
        return task
    }

    @Test(arguments: [false, true])
    func `who has waited long enough computes, once for all of a process`(_ isOther: Bool) async throws {
        let gates = [Gate(), Gate()]
        let cache = isOther ? try fixture.other() : cache
        let first = try await slow(gates[0])
        let start = ContinuousClock.now
        let tasks = (0..<10).map { _ in
            Task { [fixture, brief] in
                await cache.value(
                    forKey: "key",
                    reading: brief,
                    orCompute: fixture.compute("two", gates[1])
                )
                .text
            }
        }
        try await eventually("one of them computes") { gates[1].count >= 1 }
        gates[1].open()
        for task in tasks { #expect(await task.value == "two") }
        // Those who wait for the second computation have a limit as well, which passes on a busy machine.
        let limits = Int((ContinuousClock.now - start) / limit)
        #expect((2...1 + limits).contains(fixture.count))
        gates[0].open()
        #expect(await first.value == "slow")
        fixture.expectNothingLeft(cache)
    }

    @Test func `a thread computes as well after its limit`() async throws {
        let gate = Gate()
        let first = try await slow(gate)
        let other = try fixture.other()
        for cache in [cache, other] {
            let data = await offload { [fixture, brief] in
                cache.value(forKey: "key", reading: brief, orCompute: fixture.computeBlocking("two"))
            }
            #expect(data.text == "two")
            try await cache.remove(forKey: "key")
        }
        gate.open()
        #expect(await first.value == "slow")
        fixture.expectNothingLeft(other)
    }

    @Test(arguments: [false, true])
    func `or gets an error that says who computes`(_ isOther: Bool) async throws {
        let gate = Gate()
        let cache = isOther ? try fixture.other() : cache
        let first = try await slow(gate)
        for limit in [Duration.zero, .milliseconds(20)] {
            do throws(WaitError<Never>) {
                _ = try await cache.value(forKey: "key", within: limit, orCompute: fixture.compute("two"))
                Issue.record("no error")
            } catch {
                guard case .timedOut(let holder?) = error else {
                    Issue.record("\(error)")
                    continue
                }
                #expect(holder.processIdentifier == getpid())
                #expect(abs(holder.since.timeIntervalSinceNow) < 60)
            }
            let result = await offload { [fixture] in
                Result { () throws(WaitError<Never>) in
                    try cache.value(forKey: "key", within: limit, orCompute: fixture.computeBlocking("two"))
                }
            }
            guard case .failure(.timedOut(_?)) = result else {
                Issue.record("\(result)")
                continue
            }
        }
        #expect(fixture.count == 1)
        gate.open()
        #expect(await first.value == "slow")
        #expect(
            try await cache.value(forKey: "key", within: .zero, orCompute: fixture.compute("two")).text
                == "slow"
        )
        fixture.expectNothingLeft(cache)
    }

    @Test func `a limit does not keep anybody from computing, and its errors are wrapped`() async throws {
        #expect(
            try await cache.value(forKey: "a", within: .zero, orCompute: fixture.compute("one")).text == "one"
        )
        await #expect(throws: WaitError.computation(Broken(number: 3))) {
            try await cache.value(forKey: "b", within: .zero) { () async throws(Broken) in
                throw Broken(number: 3)
            }
        }
    }
}
