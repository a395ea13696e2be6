// SPDX-License-Identifier: Apache-2.0

/// Fingerprints of what was evicted recently: everything in the last half of its capacity, up to twice as many.
///
/// Two keys may share a fingerprint. One of them is then taken to have been here before, and only gets a better
/// place than it has earned.
struct GhostList: Sendable {
    private var recent: Set<UInt64> = []
    private var older: Set<UInt64> = []

    /// Fingerprints that are remembered.
    var count: Int { recent.count + older.count }

    /// Whether `fingerprint` is remembered.
    func contains(_ fingerprint: UInt64) -> Bool {
        recent.contains(fingerprint) || older.contains(fingerprint)
    }

    /// Remembers `fingerprint`, and forgets older ones so that no more than `capacity` are left.
    mutating func add(_ fingerprint: UInt64, capacity: Int) {
        if recent.count >= max(1, capacity / 2) {
            swap(&older, &recent)
            recent.removeAll(keepingCapacity: true)
        }
        older.remove(fingerprint)
        recent.insert(fingerprint)
    }

    /// Whether `fingerprint` is remembered; it no longer is.
    mutating func take(_ fingerprint: UInt64) -> Bool {
        if count == 0 { return false }
        return recent.remove(fingerprint) != nil || older.remove(fingerprint) != nil
    }
}
