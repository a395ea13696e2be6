// SPDX-License-Identifier: Apache-2.0

import Platform

/// The entries that are to go next: of those that a sweep has seen the least recently used ones, in bounded number.
///
/// When the list is full all but ``SweepCandidates/kept`` of them are dropped, the most recently used, and from then on
/// none is taken in that comes after those that stay. So every entry before ``end`` is in the list, and the order
/// of eviction is exactly that of the last uses. 88 bytes each, and 8 while some are dropped.
struct SweepCandidates {
    /// With room for as many as there may be from the start, as an array that grows has both the old and the new room
    /// while it moves; what is not in use of it takes no memory.
    private(set) var entries: [SeenEntry] = []
    /// Of what comes after it some were not taken in.
    private(set) var end = EvictionOrder.last
    /// How many there may be at most, and how many stay when there are so many.
    let capacity: Int
    let kept: Int

    /// For a sweep that has `wanted` to delete, or so: more go into the list, as others may be spared.
    init(wanted: Int, limit: Int = Self.most) {
        let kept = min(max(wanted, Self.fewest), limit)
        self.init(kept: kept, capacity: kept + max(kept / 8, min(kept / 2, Self.fewest)))
    }

    /// By default for none.
    init(kept: Int = 0, capacity: Int = 0) {
        self.kept = kept
        self.capacity = capacity
        entries.reserveCapacity(capacity)
    }

    /// 6 MB of them.
    private static let fewest = 1 << 16
    /// With what is dropped at a time 4 million, 370 MB.
    ///
    /// To evict more takes another pass for each 3 million or so.
    static let most = 32 << 20 / 9

    /// Whether some entries were not taken in.
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
        // Those used at that very time are told apart by their keys.
        let before = times[..<kept].count { $0 < time }
        let ties = entries.lazy.filter { $0.lastUse == time }.map(\.order).sorted()
        let end = ties[kept - before]
        entries.removeAll { $0.order >= end }
        self.end = end
    }

    /// The places of all, the least recently used first.
    ///
    /// Numbers are sorted, of the last use in the upper half and the place in the lower, which is several times as fast as
    /// to look up the entries. In 32 bits the time is as exact as a 4 billionth of what lies between the first use and
    /// the last; where that does not tell two apart, they are looked up. 12 bytes each, and 4 while they are sorted.
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
