// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The generator of all adapters (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

/// In which order keys are used.
enum Order {
    /// 0 to `count` - 1 shuffled, the same in all adapters for the same seed.
    static func permutation(_ count: Int, seed: UInt64) -> [Int] {
        var order = Array(0..<count)
        var random = SplitMix(state: seed &* 7919 &+ 17)
        for index in stride(from: count - 1, to: 0, by: -1) {
            order.swapAt(index, Int(random.next() % UInt64(index + 1)))
        }
        return order
    }

    /// `length` draws by Zipf's law with the exponent 0.99 that YCSB uses; which keys are popular is the
    /// same for all seeds.
    static func zipf(_ count: Int, length: Int, seed: UInt64) -> [Int] {
        var total = 0.0
        let cumulative = (1...count).map { rank in
            total += pow(Double(rank), -0.99)
            return total
        }
        let keys = permutation(count, seed: 424_242)
        var random = SplitMix(state: seed)
        return (0..<length).map { _ in
            let target = Double(random.next() >> 11) / 9_007_199_254_740_992 * total
            var low = 0
            var high = count - 1
            while low < high {
                let middle = (low + high) / 2
                if cumulative[middle] < target { low = middle + 1 } else { high = middle }
            }
            return keys[low]
        }
    }
}
