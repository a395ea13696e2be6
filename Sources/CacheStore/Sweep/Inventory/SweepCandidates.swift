// SPDX-License-Identifier: Apache-2.0

import Platform

/// The next entries to evict: a bounded number of the least recently used entries that a sweep has seen.
///
/// When the list is full, all but the ``SweepCandidates/kept`` least recently used entries are dropped. From then on no
/// entry is added that comes after the remaining ones. So the list has every entry before ``end``, and the order of
/// eviction is exactly the order of the last uses. The list takes 88 bytes for each entry, and 8 more while entries are
/// dropped.
struct SweepCandidates {
    /// The entries, in no particular order.
    ///
    /// The array has its full capacity from the start, because a growing array occupies both the old and the new buffer
    /// while it moves. The unused part takes no memory.
    private(set) var entries: [SeenEntry] = []
    /// The list lacks some or all of the entries at or after this position.
    private(set) var end = EvictionOrder.last
    /// The largest number of entries.
    let capacity: Int
    let kept: Int

    /// Creates a list for a sweep that must delete about `wanted` entries; it holds more, because some may be spared.
    init(wanted: Int, limit: Int = Self.most) {
        let kept = min(max(wanted, Self.fewest), limit)
        self.init(kept: kept, capacity: kept + max(kept / 8, min(kept / 2, Self.fewest)))
    }

    /// Creates a list; by default one that holds nothing.
    init(kept: Int = 0, capacity: Int = 0) {
        self.kept = kept
        self.capacity = capacity
        entries.reserveCapacity(capacity)
    }

    /// The least number of entries to keep: 6 MB.
    private static let fewest = 1 << 16
    /// The largest number of entries to keep: 4 million with those that are dropped at a time, 370 MB.
    ///
    /// Each pass can evict 3.7 to 4.2 million entries; evicting more takes another pass.
    static let most = 32 << 20 / 9

    /// Whether the list lacks some entries.
    var isCut: Bool { end != .last }

    mutating func add(_ entry: SeenEntry) {
        guard capacity > 0, entry.order < end else { return }
        entries.append(entry)
        if entries.count == capacity { cut() }
    }

    mutating func keep(_ isKept: (SeenEntry) -> Bool) {
        entries.removeAll { !isKept($0) }
    }

    private mutating func cut() {
        var times = entries.map(\.lastUse)
        times.sort()
        let time = times[kept]
        // Entries that were used at exactly that time are ordered by their keys.
        let before = times[..<kept].count { $0 < time }
        let ties = entries.lazy.filter { $0.lastUse == time }.map(\.order).sorted()
        let end = ties[kept - before]
        entries.removeAll { $0.order >= end }
        self.end = end
    }

    /// Returns the indices of all entries, the least recently used first.
    ///
    /// It sorts numbers with the last use in the upper half and the index in the lower half, which is several times as
    /// fast as comparing entries. The 32 bits resolve a 4 billionth of the range from the first use to the last. Entries
    /// whose upper halves are equal are compared directly. This takes 12 bytes for each entry, and 4 more during the
    /// sort.
    func inOrder() -> [UInt32] {
        let times = entries.lazy.map(\.lastUse.nanoseconds)
        guard let first = times.min(), let last = times.max() else { return [] }
        let unit = UInt64(bitPattern: last &- first) >> 32 + 1
        var order: [UInt64] = []
        order.reserveCapacity(entries.count)
        for (place, time) in times.enumerated() {
            order.append((UInt64(bitPattern: time &- first) / unit) << 32 | UInt64(place))
        }
        order.sort()
        var begin = 0
        while begin < order.count {
            let end = order[begin...].firstIndex { $0 >> 32 != order[begin] >> 32 } ?? order.count
            if end - begin > 1 {
                order[begin..<end].sort { self[$0].order < self[$1].order }
            }
            begin = end
        }
        return order.map { UInt32(truncatingIfNeeded: $0) }
    }

    private subscript(place: UInt64) -> SeenEntry { entries[Int(place & 0xffff_ffff)] }
}
