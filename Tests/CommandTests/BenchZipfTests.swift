// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@testable import diskcache

@Suite(.takesTurns) struct BenchZipfTests {
    private static let draws = 200_000

    private func frequencies(_ sampler: ZipfSampler, count: Int) -> [Int] {
        var generator = SplitMix64(seed: 42)
        var frequencies = Array(repeating: 0, count: count)
        for _ in 0..<Self.draws { frequencies[sampler.next(using: &generator)] += 1 }
        return frequencies
    }

    @Test
    func `each rank is drawn as often as its probability says`() {
        let sampler = ZipfSampler(count: 1000, seed: 1)
        let frequencies = frequencies(sampler, count: 1000)
        for rank in [0, 1, 2, 5, 10, 50, 200] {
            let expected = sampler.probability(rank: rank) * Double(Self.draws)
            let found = Double(frequencies[sampler.key(rank: rank)])
            // Five standard deviations of a binomial count.
            #expect(abs(found - expected) < 5 * expected.squareRoot(), "rank \(rank)")
        }
    }

    @Test
    func `probabilities fall as 1 over rank to the 0.99 and add up to 1`() {
        let sampler = ZipfSampler(count: 1000, seed: 1)
        let sum = (0..<1000).reduce(0) { $0 + sampler.probability(rank: $1) }
        #expect(abs(sum - 1) < 1e-9)
        // 10^0.99 = 9.7724.
        let ratio = sampler.probability(rank: 0) / sampler.probability(rank: 9)
        #expect(abs(ratio - 9.7724) < 0.001)
    }

    @Test
    func `all keys can be drawn, and no other`() {
        let sampler = ZipfSampler(count: 5, seed: 9)
        #expect(Set((0..<5).map { sampler.key(rank: $0) }) == Set(0..<5))
        #expect(frequencies(sampler, count: 5).allSatisfy { $0 > 0 })
    }

    @Test
    func `which keys are popular is shuffled by the seed, and the same for the same seed`() {
        let one = ZipfSampler(count: 1000, seed: 1)
        let same = ZipfSampler(count: 1000, seed: 1)
        let other = ZipfSampler(count: 1000, seed: 2)
        let ranks = 0..<1000
        #expect(ranks.map { one.key(rank: $0) } == ranks.map { same.key(rank: $0) })
        #expect(ranks.map { one.key(rank: $0) } != ranks.map { other.key(rank: $0) })
        #expect(ranks.map { one.key(rank: $0) } != Array(ranks))
    }

    @Test
    func `a single key is always drawn`() {
        var generator = SplitMix64(seed: 1)
        let sampler = ZipfSampler(count: 1, seed: 1)
        #expect((0..<100).allSatisfy { _ in sampler.next(using: &generator) == 0 })
    }
}
