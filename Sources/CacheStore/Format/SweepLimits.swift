// SPDX-License-Identifier: Apache-2.0

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
