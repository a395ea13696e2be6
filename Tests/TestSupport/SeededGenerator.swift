// SPDX-License-Identifier: Apache-2.0

/// A generator of reproducible random numbers: SplitMix64 (Steele, Lea, Flood, 2014).
public struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    /// Creates a generator with a seed; a test should print the seed if it fails.
    public init(seed: UInt64) {
        state = seed
    }

    /// Returns the next number.
    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
        return value ^ value >> 31
    }

    /// Returns pseudorandom bytes.
    public static func bytes(_ count: Int, seed: UInt64) -> [UInt8] {
        var generator = SeededGenerator(seed: seed)
        return [UInt8](unsafeUninitializedCapacity: count + 8) { bytes, initialized in
            for offset in stride(from: 0, to: count, by: 8) {
                UnsafeMutableRawBufferPointer(bytes).storeBytes(
                    of: generator.next(),
                    toByteOffset: offset,
                    as: UInt64.self
                )
            }
            initialized = count
        }
    }
}
