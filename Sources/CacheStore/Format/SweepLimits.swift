// SPDX-License-Identifier: Apache-2.0

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

    /// Whether something that was good went for want of room.
    var isEviction: Bool { self == .entries || self == .size || self == .freeSpace }
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

    /// Whether they bound what the directory takes.
    package var areBounding: Bool { maximumSize != nil || maximumEntries != nil || minimumFree != nil }
}
