// SPDX-License-Identifier: Apache-2.0

/// The fingerprints of recently evicted values.
///
/// A list of a given capacity remembers at least half as many of the latest fingerprints, and at most as many. Two keys
/// may share a fingerprint; the only effect is that one of them is treated as evicted recently, and gets a better place
/// in the queues than it has earned.
struct GhostList: Sendable {
    private var recent: Set<UInt64> = []
    private var older: Set<UInt64> = []

    /// The number of remembered fingerprints.
    var count: Int { recent.count + older.count }

    /// Returns whether `fingerprint` is remembered.
    func contains(_ fingerprint: UInt64) -> Bool {
        recent.contains(fingerprint) || older.contains(fingerprint)
    }

    /// Remembers `fingerprint`, and forgets older ones so that at most `capacity` remain.
    mutating func add(_ fingerprint: UInt64, capacity: Int) {
        if recent.count >= max(1, capacity / 2) {
            swap(&older, &recent)
            recent.removeAll(keepingCapacity: true)
        }
        older.remove(fingerprint)
        recent.insert(fingerprint)
    }

    /// Forgets `fingerprint`, and returns whether it was remembered.
    mutating func take(_ fingerprint: UInt64) -> Bool {
        if count == 0 { return false }
        return recent.remove(fingerprint) != nil || older.remove(fingerprint) != nil
    }
}
