// SPDX-License-Identifier: Apache-2.0

import Platform

/// The entries that are to go next: of those that a sweep has seen the least recently used ones, in bounded number.
///
/// When the list is full all but ``SweepCandidates/kept`` of them are dropped, the most recently used, and from then on
/// none is taken in that comes after those that stay. So every entry before ``end`` is in the list, and the order
/// of eviction is exactly that of the last uses. 88 bytes each, and 8 while some are dropped.
struct SweepCandidates {
    private(set) var entries = Segments<SeenEntry>()
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
        entries.keep(isKept)
    }

    private mutating func cut() {
        var times = (0..<entries.count).map { entries[$0].lastUse }
        times.sort()
        let time = times[kept]
        // Those used at that very time are told apart by their keys.
        let before = times[..<kept].count { $0 < time }
        var ties: [EvictionOrder] = []
        for index in 0..<entries.count where entries[index].lastUse == time {
            ties.append(entries[index].order)
        }
        ties.sort()
        let end = ties[kept - before]
        entries.keep { $0.order < end }
        self.end = end
    }

    /// The places of all, the least recently used first.
    ///
    /// Numbers are sorted, of the last use in the upper half and the place in the lower, which is several times as fast as
    /// to look up the entries. In 32 bits the time is as exact as a 4 billionth of what lies between the first use and
    /// the last; where that does not tell two apart, they are looked up. 12 bytes each, and 4 while they are sorted.
    func inOrder() -> [UInt32] {
        let times = (0..<entries.count).lazy.map { entries[$0].lastUse.nanoseconds }
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

/// A list that grows without moving what it holds, in pieces of 4096 elements.
///
/// An array that doubles has up to half of its room empty, and both the old and the new room while it moves.
struct Segments<Element> {
    private static var shift: Int { 12 }
    private var segments: [[Element]] = []
    private(set) var count = 0

    mutating func append(_ element: Element) {
        if count == segments.count << Self.shift {
            segments.append([])
            segments[segments.count - 1].reserveCapacity(1 << Self.shift)
        }
        segments[count >> Self.shift].append(element)
        count += 1
    }

    subscript(index: Int) -> Element {
        get { segments[index >> Self.shift][index & (1 << Self.shift - 1)] }
        _modify { yield &segments[index >> Self.shift][index & (1 << Self.shift - 1)] }
    }

    /// Keeps those that `isKept` says to, in their order; their room is given back.
    mutating func keep(_ isKept: (Element) -> Bool) {
        var kept = 0
        for index in 0..<count where isKept(self[index]) {
            if kept != index { self[kept] = self[index] }
            kept += 1
        }
        let full = kept >> Self.shift
        let rest = kept & (1 << Self.shift - 1)
        segments.removeLast(segments.count - full - (rest > 0 ? 1 : 0))
        if rest > 0 { segments[full].removeLast(segments[full].count - rest) }
        count = kept
    }
}
