// SPDX-License-Identifier: Apache-2.0

/// Fingerprints of what was evicted lately, oldest first.
///
/// Two keys may share a fingerprint: one of them is then thought to have been here before, which costs
/// nothing but a better place than it has earned.
struct GhostList: Sendable {
    /// The fingerprints in their order, with those in front of `start` gone.
    private var ring: [UInt64] = []
    private var start = 0
    /// Number of the fingerprint at the start.
    private var firstNumber = 0
    /// The number of each fingerprint's latest eviction.
    private var numbers: [UInt64: Int] = [:]

    /// Fingerprints that are remembered.
    var count: Int { numbers.count }

    /// Remembers `fingerprint`, and forgets the oldest ones beyond the last `capacity` evictions.
    mutating func add(_ fingerprint: UInt64, capacity: Int) {
        numbers[fingerprint] = firstNumber + ring.count - start
        ring.append(fingerprint)
        while ring.count - start > capacity { forgetOldest() }
    }

    /// Whether `fingerprint` is remembered; it no longer is.
    mutating func take(_ fingerprint: UInt64) -> Bool {
        numbers.removeValue(forKey: fingerprint) != nil
    }

    /// Forgets everything.
    mutating func removeAll() {
        self = GhostList()
    }

    private mutating func forgetOldest() {
        let oldest = ring[start]
        // Evicted again since, or taken: then this place in the ring no longer stands for it.
        if numbers[oldest] == firstNumber { numbers[oldest] = nil }
        firstNumber += 1
        start += 1
        if start * 2 > ring.count {
            ring.removeFirst(start)
            start = 0
        }
    }
}
