// SPDX-License-Identifier: Apache-2.0

import TestSupport

/// A generator of requests: machines are uniformly distributed, and keys by Zipf's law.
struct ZipfDemand {
    private let machines: Int
    /// The cumulative probability of each key, times a constant.
    private let chances: [Double]
    private var generator: SeededGenerator

    init(_ terms: SimulationTerms) {
        machines = terms.machines
        generator = SeededGenerator(seed: terms.seed)
        var sum = 0.0
        var chances: [Double] = []
        chances.reserveCapacity(terms.keys)
        for rank in 1...terms.keys {
            sum += 1 / power(Double(rank), terms.exponent)
            chances.append(sum)
        }
        self.chances = chances
    }

    mutating func next() -> (machine: Int, key: Int) {
        let machine = Int(fraction() * Double(machines))
        let chosen = fraction() * chances[chances.count - 1]
        var (low, high) = (0, chances.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if chances[middle] > chosen { high = middle } else { low = middle + 1 }
        }
        return (machine, low)
    }

    /// Returns a random number of at least 0 and less than 1.
    private mutating func fraction() -> Double {
        Double(generator.next() >> 11) * 0x1p-53
    }
}

/// Returns `base` to the power of `exponent`, computed by square roots.
///
/// Not every platform has a mathematics library.
private func power(_ base: Double, _ exponent: Double) -> Double {
    var result = 1.0
    var (whole, rest) = (Int(exponent), exponent - Double(Int(exponent)))
    while whole > 0 { (result, whole) = (result * base, whole - 1) }
    var root = base
    for _ in 0..<40 where rest > 0 {
        root = root.squareRoot()
        rest *= 2
        if rest >= 1 { (result, rest) = (result * root, rest - 1) }
    }
    return result
}
