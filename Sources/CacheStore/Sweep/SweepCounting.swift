// SPDX-License-Identifier: Apache-2.0

extension StoreCounters.Event {
    /// Creates the event that counts a sweep's removals for this reason.
    package init(_ reason: RemovalReason) {
        switch reason {
        case .staleTemporary: self = .sweptTemporary
        case .expired: self = .sweptExpired
        case .cleared: self = .sweptCleared
        case .dangling: self = .sweptDangling
        case .corrupt: self = .sweptCorrupt
        case .orphan: self = .sweptOrphan
        case .age: self = .sweptAge
        case .idle: self = .sweptIdle
        case .entries: self = .sweptEntries
        case .size: self = .sweptSize
        case .freeSpace: self = .sweptFreeSpace
        }
    }
}
