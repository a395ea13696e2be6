// SPDX-License-Identifier: Apache-2.0

import Platform

/// Draws keys as caches see them: few are wanted often, most hardly ever.
///
/// The key of rank r comes with a probability proportional to 1/r^0.99, as in YCSB's core workloads (Cooper
/// et al., "Benchmarking cloud serving systems with YCSB", SoCC 2010). Which key has which rank is shuffled,
/// so that popularity tells nothing of where an entry lies.
struct ZipfSampler: Sendable {
    static let exponent = 0.99

    private let cumulative: [Double]
    private let keys: [Int]

    /// - Parameter seed: decides which keys are popular; the same for all processes of a run.
    init(count: Int, seed: UInt64) {
        var sum = 0.0
        cumulative = (1...max(1, count)).map { rank in
            sum += power(Double(rank), -Self.exponent)
            return sum
        }
        var generator = SplitMix64(seed: seed)
        keys = (0..<max(1, count)).shuffled(using: &generator)
    }

    /// The key of a rank, counted from 0: the most popular.
    func key(rank: Int) -> Int { keys[rank] }

    /// The probability of a rank, counted from 0.
    func probability(rank: Int) -> Double {
        power(Double(rank + 1), -Self.exponent) / (cumulative.last ?? 1)
    }

    /// Draws a key.
    ///
    /// - Complexity: O(log *n*).
    func next(using generator: inout some RandomNumberGenerator) -> Int {
        let target = Double.random(in: 0..<(cumulative.last ?? 1), using: &generator)
        var low = 0
        var high = cumulative.count - 1
        while low < high {
            let middle = (low + high) / 2
            if cumulative[middle] <= target { low = middle + 1 } else { high = middle }
        }
        return keys[low]
    }
}
