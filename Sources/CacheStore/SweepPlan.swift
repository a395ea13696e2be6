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
    /// Bytes on disk of the whole directory, as `du` shows them.
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

/// What has to go for the limits to hold; none where it is 0 or less.
struct SweepExcess: Sendable, Equatable {
    /// Entries too many.
    var entries = 0
    /// Bytes on disk too many.
    var size: Int64 = 0
    /// Bytes that have to become available on the file system.
    var freeSpace: Int64 = 0

    /// Why the next entry has to go; nil: none has to.
    var reason: SweepReason? {
        if entries > 0 { return .entries }
        if size > 0 { return .size }
        return freeSpace > 0 ? .freeSpace : nil
    }

    mutating func subtract(_ bytes: Int64) {
        entries -= 1
        size -= bytes
        freeSpace -= bytes
    }
}

/// Which of the candidates to evict: a pure function of what was seen and what has to go.
///
/// They go in the order in which they are given, the least recently used first, until the limits hold: so it is so
/// many of them for each reason, one reason after the other.
struct SweepPlan: Sendable, Equatable {
    /// How many go for a reason.
    struct Part: Sendable, Equatable {
        let reason: SweepReason
        var count: Int
    }

    private(set) var parts: [Part] = []

    var count: Int { parts.reduce(0) { $0 + $1.count } }

    /// Memory: 12 to 40 bytes for each content that several entries name.
    ///
    /// - Complexity: O(*n*) in the candidates that go.
    init(_ candidates: some Sequence<SeenEntry>, marks: SweepMarks, excess: SweepExcess) {
        var excess = excess
        // Of contents that several entries name: how many of those go.
        var gone: [UInt64: Int] = [:]
        for entry in candidates {
            guard let reason = excess.reason else { return }
            if parts.last?.reason == reason {
                parts[parts.count - 1].count += 1
            } else {
                parts.append(Part(reason: reason, count: 1))
            }
            var bytes = entry.allocatedSize.bytes
            // Content that several keys share takes its space until the last of them goes.
            if let mark = marks.mark(of: entry.content), mark.presence == .present {
                if mark.references == 1 {
                    bytes += mark.allocatedSize.bytes
                } else {
                    gone[marks.fingerprint(of: entry.content), default: 0] += 1
                    let count = gone[marks.fingerprint(of: entry.content)]
                    if count == mark.references, mark.references < ContentMark.mostReferences {
                        bytes += mark.allocatedSize.bytes
                    }
                }
            }
            excess.subtract(bytes)
        }
    }

    /// Why the entry at `position` goes.
    func reason(at position: Int) -> SweepReason? {
        var end = 0
        for part in parts {
            end += part.count
            if position < end { return part.reason }
        }
        return nil
    }
}
