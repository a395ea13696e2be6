// SPDX-License-Identifier: Apache-2.0

package import Platform

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

    package init() {}
}

/// An entry as a sweep saw it.
package struct ScannedEntry: Sendable {
    package let key: Digest
    /// nil where the record does not parse.
    package let content: Digest?
    package let created: Timestamp
    package let lastUse: Timestamp
    package let isExpired: Bool
    /// Bytes on disk of the entry's own file.
    package let allocatedSize: Int64
    /// What must still be so when it is deleted.
    let witness: Witness

    /// The state of an entry, to be compared with a later one.
    struct Witness: Sendable, Equatable {
        let identity: FileStatus.Identity
        let accessed: Timestamp
        /// A hash of the record's bytes with the process's random seed.
        let record: Int
    }
}

/// An object as a sweep saw it.
package struct ScannedObject: Sendable {
    package let digest: Digest
    /// Bytes on disk.
    package let allocatedSize: Int64
    package let changed: Timestamp
}

/// What to delete: a pure function of what was seen, the limits and the time.
package struct SweepPlan: Sendable {
    /// An entry to delete.
    package struct Removal: Sendable, Equatable {
        /// Its place among the scanned entries.
        package let index: Int
        package let reason: SweepReason
    }

    /// In the order in which to delete them.
    package private(set) var removals: [Removal] = []

    private let entries: [ScannedEntry]
    private var isRemoved: [Bool]
    private var references: [Digest: Int] = [:]
    private var objectSizes: [Digest: Int64] = [:]
    private var remainingEntries: Int
    private var remainingSize: Int64 = 0

    /// Plans: first what is worthless, then what is too old, then, least recently used first, what is
    /// over the limits.
    ///
    /// - Complexity: O(*n* log *n*) in the entries, and only O(*n*) where the limits already hold.
    package init(
        entries: [ScannedEntry],
        objects: [ScannedObject],
        limits: SweepLimits,
        now: Timestamp
    ) {
        self.entries = entries
        isRemoved = Array(repeating: false, count: entries.count)
        remainingEntries = entries.count
        count(objects)
        removeWorthless()
        removeOld(limits, now: now)
        removeLeastRecentlyUsed(limits)
    }

    private mutating func count(_ objects: [ScannedObject]) {
        for object in objects { objectSizes[object.digest] = object.allocatedSize }
        for entry in entries {
            remainingSize += entry.allocatedSize
            guard let content = entry.content, let size = objectSizes[content] else { continue }
            // Content that several keys share takes its space once.
            if references[content, default: 0] == 0 { remainingSize += size }
            references[content, default: 0] += 1
        }
    }

    private mutating func remove(_ index: Int, _ reason: SweepReason) {
        guard !isRemoved[index] else { return }
        isRemoved[index] = true
        removals.append(Removal(index: index, reason: reason))
        remainingEntries -= 1
        remainingSize -= entries[index].allocatedSize
        guard let content = entries[index].content, let count = references[content] else { return }
        references[content] = count - 1
        if count == 1 { remainingSize -= objectSizes[content] ?? 0 }
    }

    private mutating func removeWorthless() {
        for (index, entry) in entries.enumerated() {
            guard let content = entry.content else {
                remove(index, .corrupt)
                continue
            }
            if entry.isExpired {
                remove(index, .expired)
            } else if objectSizes[content] == nil {
                remove(index, .dangling)
            }
        }
    }

    private mutating func removeOld(_ limits: SweepLimits, now: Timestamp) {
        for (index, entry) in entries.enumerated() {
            if let age = limits.maximumAge, now - entry.created > age {
                remove(index, .age)
            } else if let idle = limits.maximumIdleTime, now - entry.lastUse > idle {
                remove(index, .idle)
            }
        }
    }

    private mutating func removeLeastRecentlyUsed(_ limits: SweepLimits) {
        let maximumEntries = limits.maximumEntries ?? .max
        let maximumSize = limits.maximumSize ?? .max
        guard remainingEntries > maximumEntries || remainingSize > maximumSize else { return }
        let candidates = entries.indices.filter { !isRemoved[$0] }
            .sorted { entries[$0].lastUse < entries[$1].lastUse }
        for index in candidates {
            if remainingEntries > maximumEntries {
                remove(index, .entries)
            } else if remainingSize > maximumSize {
                remove(index, .size)
            } else {
                return
            }
        }
    }
}
