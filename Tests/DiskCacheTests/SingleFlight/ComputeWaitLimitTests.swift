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

    /// Starts a caller that computes until the gate is opened.
    func slow(_ gate: Gate) async throws -> Task<String, Never> {
        let task = Task { [cache, fixture] in
            await cache.value(forKey: "key", orCompute: fixture.compute("slow", gate)).text
        }
        try await eventually("it computes") { gate.count == 1 }
        return task
    }

    @Test(arguments: [false, true])
    func `after the wait limit one waiter per process computes`(_ isOther: Bool) async throws {
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
        // Waiters for the second computation have a limit, too, which may expire on a busy machine.
        let limits = Int((ContinuousClock.now - start) / limit)
        #expect((2...1 + limits).contains(fixture.count))
        gates[0].open()
        #expect(await first.value == "slow")
        fixture.expectNothingLeft(cache)
    }

    @Test func `a blocking call computes after its wait limit`() async throws {
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
    func `a call that fails at its wait limit names the computing process`(_ isOther: Bool) async throws {
        let gate = Gate()
        let cache = isOther ? try fixture.other() : cache
        let first = try await slow(gate)
        for limit in [Duration.zero, .milliseconds(20)] {
            let failing = ReadOptions(waitLimit: limit, failsAtWaitLimit: true)
            do {
                _ = try await hit(in: cache, failing, orCompute: "two")
                Issue.record("no error")
            } catch let error as CacheError {
                #expect(error.code == .timedOut)
                #expect(error.message.contains("process \(getpid()) "))
            }
            let code = await offload { [fixture] () -> CacheError.Code? in
                let compute = fixture.computeBlocking("two")
                do {
                    _ = try cache.hit(forKey: "key", reading: failing) { _ in .value(compute()) }
                    return nil
                } catch {
                    return (error as? CacheError)?.code
                }
            }
            #expect(code == .timedOut)
        }
        #expect(fixture.count == 1)
        gate.open()
        #expect(await first.value == "slow")
        let late = try await hit(
            in: cache,
            ReadOptions(waitLimit: .zero, failsAtWaitLimit: true),
            orCompute: "two"
        )
        #expect(late?.value.text == "slow")
        fixture.expectNothingLeft(cache)
    }

    private func hit(
        in cache: SharedCache,
        _ reading: ReadOptions,
        orCompute text: String
    ) async throws -> CacheHit<Data>? {
        let compute = fixture.compute(text)
        return try await cache.hit(forKey: "key", reading: reading) { _ in .value(await compute()) }
    }

    @Test func `a leader ignores the wait limit and throws its own errors unchanged`()
        async throws
    {
        let failing = ReadOptions(waitLimit: .zero, failsAtWaitLimit: true)
        #expect(try await hit(in: cache, failing, orCompute: "one")?.value.text == "one")
        await #expect(throws: Broken(number: 3)) {
            try await cache.hit(forKey: "b", reading: failing) { _ in throw Broken(number: 3) }
        }
    }

    @Test func `a value call that cannot throw computes at its wait limit instead of failing`()
        async throws
    {
        let gate = Gate()
        let first = try await slow(gate)
        let failing = ReadOptions(waitLimit: .milliseconds(20), failsAtWaitLimit: true)
        let data = await cache.value(forKey: "key", reading: failing, orCompute: fixture.compute("two"))
        #expect(data.text == "two")
        gate.open()
        #expect(await first.value == "slow")
        fixture.expectNothingLeft()
    }
}
