// SPDX-License-Identifier: Apache-2.0

import Platform

/// Why something is deleted.
///
/// Every deletion has exactly one reason.
package enum SweepReason: String, CaseIterable, Sendable, Codable {
    /// A file in `tmp`, or the lock of a computation, whose process is gone.
    case staleTemporary
    /// An entry past its expiration, and past the time it might still be given out stale.
    case expired
    /// An entry whose object is gone.
    case dangling
    /// An entry whose record does not parse, or which has none.
    case corrupt
    /// An object that no entry names.
    case orphan
    /// An entry older than the age limit.
    case age
    /// An entry unused for longer than the idle limit.
    case idle
    /// An entry too many, the least recently used first.
    case entries
    /// An entry over the size limit, the least recently used first.
    case size
    /// An entry that had to go for the file system to keep some space free, the least recently used first.
    case freeSpace
}

/// How much of a file system is to stay available.
package enum FreeSpaceFloor: Sendable, Equatable {
    case bytes(Int64)
    /// Of the file system's size: 0 to 1.
    case share(Double)

    /// In bytes, on a file system of that size.
    package func bytes(of total: Int64) -> Int64 {
        switch self {
        case .bytes(let bytes): bytes
        case .share(let share): Int64(Double(total) * share)
        }
    }
}

/// What a sweep should leave.
package struct SweepLimits: Sendable, Equatable {
    /// Bytes on disk of entries and objects.
    package var maximumSize: Int64?
    package var maximumEntries: Int?
    /// Time since an entry was written.
    package var maximumAge: Duration?
    /// Time since an entry was last used.
    package var maximumIdleTime: Duration?
    /// What is to stay available to everybody on the file system.
    package var minimumFree: FreeSpaceFloor?

    package init() {}
}

/// What to delete: a pure function of what was seen and the limits.
struct SweepPlan: Sendable {
    /// An entry to delete: 8 bytes.
    struct Removal: Sendable, Equatable {
        /// Its place among the entries that were seen.
        let index: UInt32
        let reason: SweepReason
    }

    /// Entries that are of no use to anybody.
    private(set) var worthless: [Removal] = []
    /// Entries that are too old, and, least recently used first, those that are over the limits.
    private(set) var excess: [Removal] = []

    private var isRemoved: [Bool]
    /// Of each content the entries that name it and stay.
    private var references: [UInt32]
    private var remainingEntries: Int
    private var remainingSize: Int64 = 0

    /// Plans: first what is worthless, then what is too old, then, least recently used first, what is
    /// over the limits.
    ///
    /// Memory: 5 bytes an entry, 8 more while entries are put in order, and 8 for each that is to go.
    ///
    /// - Complexity: O(*n* log *n*) in the entries, and only O(*n*) where the limits already hold.
    init(entries: Segments<SeenEntry>, contents: SweepContents, limits: SweepLimits) {
        isRemoved = Array(repeating: false, count: entries.count)
        references = Array(repeating: 0, count: contents.count)
        remainingEntries = entries.count
        count(entries, contents)
        removeWorthless(entries, contents)
        removeOld(entries, contents)
        removeLeastRecentlyUsed(entries, contents, limits)
    }

    private mutating func count(_ entries: Segments<SeenEntry>, _ contents: SweepContents) {
        for index in 0..<entries.count {
            let entry = entries[index]
            remainingSize += entry.allocatedSize.bytes
            guard entry.verdict != .corrupt else { continue }
            // Content that several keys share takes its space once.
            if references[Int(entry.content)] == 0 {
                remainingSize += contents[entry.content].allocatedSize.bytes
            }
            references[Int(entry.content)] += 1
        }
    }

    /// False where it was to go already.
    private mutating func remove(_ entry: SeenEntry, at index: Int, _ contents: SweepContents) -> Bool {
        if isRemoved[index] { return false }
        isRemoved[index] = true
        remainingEntries -= 1
        remainingSize -= entry.allocatedSize.bytes
        guard entry.verdict != .corrupt else { return true }
        references[Int(entry.content)] -= 1
        if references[Int(entry.content)] == 0 {
            remainingSize -= contents[entry.content].allocatedSize.bytes
        }
        return true
    }

    private mutating func removeWorthless(_ entries: Segments<SeenEntry>, _ contents: SweepContents) {
        for index in 0..<entries.count {
            let entry = entries[index]
            let isCorrupt = entry.verdict == .corrupt
            guard isCorrupt || contents.isMissing(entry.content), remove(entry, at: index, contents) else {
                continue
            }
            worthless.append(Removal(index: UInt32(index), reason: isCorrupt ? .corrupt : .dangling))
        }
    }

    private mutating func removeOld(_ entries: Segments<SeenEntry>, _ contents: SweepContents) {
        for index in 0..<entries.count {
            let entry = entries[index]
            guard entry.verdict == .age || entry.verdict == .idle, remove(entry, at: index, contents) else {
                continue
            }
            excess.append(Removal(index: UInt32(index), reason: entry.verdict == .age ? .age : .idle))
        }
    }

    private mutating func removeLeastRecentlyUsed(
        _ entries: Segments<SeenEntry>,
        _ contents: SweepContents,
        _ limits: SweepLimits
    ) {
        let maximumEntries = limits.maximumEntries ?? .max
        let maximumSize = limits.maximumSize ?? .max
        guard remainingEntries > maximumEntries || remainingSize > maximumSize else { return }
        for index in leastRecentlyUsedFirst(entries) {
            let reason: SweepReason
            if remainingEntries > maximumEntries {
                reason = .entries
            } else if remainingSize > maximumSize {
                reason = .size
            } else {
                return
            }
            if remove(entries[index], at: index, contents) {
                excess.append(Removal(index: UInt32(index), reason: reason))
            }
        }
    }

    /// The entries that stay so far, in the order of their last use, those used at the same time in the order of
    /// their places.
    ///
    /// Numbers are sorted, of the last use in the upper half and the place in the lower: several times as fast as
    /// to look up the entries. In 32 bits the time is as exact as a 4 billionth of what lies between the first
    /// use and the last, for instance 0.6 ms in a month, which is finer than accesses are noted.
    private func leastRecentlyUsedFirst(_ entries: Segments<SeenEntry>) -> some Sequence<Int> {
        let candidates = (0..<entries.count).lazy.filter { !isRemoved[$0] }
        var first = Int64.max
        var last = Int64.min
        for index in candidates {
            first = min(first, entries[index].lastUse.nanoseconds)
            last = max(last, entries[index].lastUse.nanoseconds)
        }
        let unit = UInt64(bitPattern: last &- first) >> 32 + 1
        var order: [UInt64] = []
        order.reserveCapacity(remainingEntries)
        for index in candidates {
            let age = UInt64(bitPattern: entries[index].lastUse.nanoseconds &- first)
            order.append((age / unit) << 32 | UInt64(index))
        }
        order.sort()
        return order.lazy.map { Int($0 & 0xffff_ffff) }
    }
}
