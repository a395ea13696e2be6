// SPDX-License-Identifier: Apache-2.0

import Platform

/// The next entries to evict: the least recently used of those that a sweep has seen, in bounded number.
///
/// When the list is full, all but ``SweepCandidates/kept`` of them are dropped, the most recently used, and from then on no
/// entry is added that comes after the remaining ones. So every entry before ``end`` is in the list, and the order of
/// eviction is exactly the order of the last uses. 88 bytes for each, and 8 more while some are dropped.
struct SweepCandidates {
    /// Has its full capacity from the start, because a growing array occupies both the old and the new buffer while it
    /// moves.
    ///
    /// The unused part takes no memory.
    private(set) var entries: [SeenEntry] = []
    /// Some entries at or after this position were not added.
    private(set) var end = EvictionOrder.last
    /// The largest number of entries.
    let capacity: Int
    let kept: Int

    /// Creates a list for a sweep that must delete about `wanted` entries; it holds more, as some may be spared.
    init(wanted: Int, limit: Int = Self.most) {
        let kept = min(max(wanted, Self.fewest), limit)
        self.init(kept: kept, capacity: kept + max(kept / 8, min(kept / 2, Self.fewest)))
    }

    /// Creates a list that holds nothing by default.
    init(kept: Int = 0, capacity: Int = 0) {
        self.kept = kept
        self.capacity = capacity
        entries.reserveCapacity(capacity)
    }

    /// 6 MB.
    private static let fewest = 1 << 16
    /// 4 million with those that are dropped at a time: 370 MB.
    ///
    /// Evicting more takes another pass for each 3 million or so.
    static let most = 32 << 20 / 9

    /// Whether some entries were not added.
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
        // Entries used at exactly that time are ordered by their keys.
        let before = times[..<kept].count { $0 < time }
        let ties = entries.lazy.filter { $0.lastUse == time }.map(\.order).sorted()
        let end = ties[kept - before]
        entries.removeAll { $0.order >= end }
        self.end = end
    }

    /// Returns the indices of all entries, the least recently used first.
    ///
    /// It sorts numbers with the last use in the upper half and the index in the lower half, which is several times as fast
    /// as comparing entries. The 32 bits resolve a 4 billionth of the range from the first use to the last; entries with
    /// equal numbers are compared directly. 12 bytes for each entry, and 4 more during the sort.
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
