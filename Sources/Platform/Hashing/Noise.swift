// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import Glibc

/// A seeded random number generator, for samples and test data; never for secrets.
///
/// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        return Self.mix(state)
    }

    /// Spreads every bit of `value` over all 64 bits; different values stay different.
    package static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

/// Returns `count` pseudorandom bytes, the same for the same seed.
package func noise(count: Int, seed: UInt64) -> Data {
    var generator = SplitMix64(seed: seed)
    let wordCount = (count + 7) / 8
    // A pointer and a plain loop, because unoptimized code takes ten times as long for an array.
    let words = UnsafeMutablePointer<UInt64>.allocate(capacity: wordCount)
    defer { unsafe words.deallocate() }
    var index = 0
    while index < wordCount {
        unsafe words[index] = generator.next().littleEndian
        index += 1
    }
    return unsafe Data(bytes: words, count: count)
}

/// Returns the natural logarithm of `value`; FoundationEssentials has no such function.
///
/// C: `log`.
package func naturalLogarithm(_ value: Double) -> Double {
    log(value)
}
