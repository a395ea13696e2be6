// SPDX-License-Identifier: Apache-2.0

import TestSupport

/// Which machine wants what: any machine as likely as another, keys by Zipf's law.
struct ZipfDemand {
    private let machines: Int
    /// For each key, the chance of it and all before it, times a constant.
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

    /// At least 0, less than 1.
    private mutating func fraction() -> Double {
        Double(generator.next() >> 11) * 0x1p-53
    }
}

/// `base` to the power of `exponent`, by halving the exponent: no mathematics library is at hand on every
/// platform.
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
