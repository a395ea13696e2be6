// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The space and entries of a directory, which are compared with its limits.
package struct Occupancy: Sendable, Equatable {
    /// Bytes on disk of entries, objects and partial downloads.
    package var bytes: Int64
    /// Bytes that can't be evicted: directories, the control file.
    package var overhead: Int64 = 0
    package var entries: Int
    /// The space of the file system; nil if no limit depends on it.
    package var space: FileSystemSpace?
    /// The bytes of ``space`` that are still available, but claimed by writers, and therefore count as taken.
    package var claimed: Int64 = 0
}

/// The amounts to evict so that a directory is within its limits, or within a share of them; 0 for a limit that holds.
package struct Excess: Sendable, Equatable {
    /// The number of entries over the limit.
    package var entries = 0
    /// The bytes on disk over the limit.
    package var size: Int64 = 0
    /// Bytes that have to become available on the file system.
    package var freeSpace: Int64 = 0

    /// Bytes to evict so that all limits hold.
    package var bytes: Int64 { max(size, freeSpace) }

    /// The reason why the next entry is evicted: the first exceeded limit, in the order entries, size, free space.
    ///
    /// nil if no limit is exceeded.
    package var reason: RemovalReason? {
        entries > 0 ? .entries : size > 0 ? .size : freeSpace > 0 ? .freeSpace : nil
    }

    /// Subtracts evicted entries and bytes.
    mutating func subtract(entries count: Int = 1, bytes: Int64) {
        entries -= count
        size -= bytes
        freeSpace -= bytes
    }
}

/// The marks between which the occupancy of a directory is kept, and the amounts to evict for that: pure functions.
extension CacheLimits {
    /// The share of a limit at which the janitor begins to evict.
    ///
    /// Writers can use the 5 % above it until the janitor starts.
    package static let highMark = 0.95
    /// The share of a limit down to which the janitor evicts.
    ///
    /// It evicts a twentieth of the limit at a time. So it need not run for every put, and few values are lost that would
    /// have been used again.
    package static let lowMark = 0.90

    /// The share of a limit down to which a put evicts if it finds no room.
    ///
    /// It evicts a hundredth of the limit more than it needs, so that not every put has to make its own room.
    package static let roomMark = 0.99

    /// Returns how far `occupancy` exceeds a share of the limits.
    ///
    /// The overhead is subtracted from the maximum size first; `mark` is a share of the rest. The minimum of free space
    /// rises as `mark` falls: at a mark of 95 %, 105 % of the minimum must be available.
    package func excess(of occupancy: Occupancy, over mark: Double = 1) -> Excess {
        var excess = Excess()
        if let maximumSize {
            let limit = Self.share(mark, of: maximumSize.bytes - occupancy.overhead)
            excess.size = max(0, occupancy.bytes - limit)
        }
        if let maximumEntries {
            excess.entries = max(0, occupancy.entries - Int(Self.share(mark, of: Int64(maximumEntries))))
        }
        if let minimumFree, let space = occupancy.space {
            let floor = Double(minimumFree.bytes(of: space.totalBytes)) * (2 - mark)
            excess.freeSpace = max(0, Int64(floor) - (space.availableBytes - occupancy.claimed))
        }
        return excess
    }

    /// Returns a share of a limit, rounded up: with a limit of one entry, that entry stays.
    private static func share(_ mark: Double, of limit: Int64) -> Int64 {
        mark == 1 ? limit : Int64((Double(max(0, limit)) * mark).rounded(.up))
    }

    /// Returns the amounts that the janitor has to evict to reach the low mark; nil unless `occupancy` exceeds the high
    /// mark.
    package func overflow(of occupancy: Occupancy) -> Excess? {
        excess(of: occupancy, over: Self.highMark).reason == nil
            ? nil : excess(of: occupancy, over: Self.lowMark)
    }

    /// Returns the limits for a sweep that evicts down to a share of these limits.
    package func lowered(overhead: Int64, to mark: Double = lowMark) -> CacheLimits {
        var limits = self
        limits.maximumSize = maximumSize.map {
            ByteCount(overhead + Self.share(mark, of: $0.bytes - overhead))
        }
        limits.maximumEntries = maximumEntries.map { Int(Self.share(mark, of: Int64($0))) }
        limits.minimumFree = minimumFree.map { floor in
            switch floor {
            case .bytes(let bytes): .bytes(ByteCount(Int64(Double(bytes.bytes) * (2 - mark))))
            case .percent(let percent): .percent(FreeSpace.plausible(percent * (2 - mark)))
            }
        }
        return limits
    }

    /// Returns these limits, or lower ones with which a sweep evicts at least `excess` from the present occupancy.
    func lowered(by excess: Excess, from present: Occupancy) -> CacheLimits {
        var limits = self
        let isOfFreeSpace = excess.reason == .freeSpace
        if excess.bytes > 0 {
            let rest = present.overhead + max(0, present.bytes - excess.bytes)
            if !isOfFreeSpace { limits.maximumSize = maximumSize.map { min($0, ByteCount(rest)) } }
            // If the disk is full, space must become available even if no minimum is set.
            if minimumFree != nil || isOfFreeSpace, let space = present.space {
                let floor = minimumFree?.bytes(of: space.totalBytes) ?? 0
                limits.minimumFree = .bytes(ByteCount(max(floor, space.availableBytes + excess.bytes)))
            }
        }
        if excess.entries > 0 {
            let rest = max(0, present.entries - excess.entries)
            limits.maximumEntries = maximumEntries.map { min($0, rest) }
        }
        return limits
    }
}

/// The bytes that a sweep must make available on a file system to restore its floor, the minimum of free space.
struct FreeSpaceGoal: Equatable {
    private let floor: Int64
    private let start: FileSystemSpace
    /// Bytes that were missing at the start, if known; negative if more than the floor was available.
    private(set) var shortfall: Int64

    init(_ floor: CacheLimits.FreeSpace, at space: FileSystemSpace) {
        // Limited, so that adding real sizes does not overflow.
        self.floor = min(floor.bytes(of: space.totalBytes), 1 << 62)
        start = space
        shortfall = self.floor - space.availableBytes
    }

    /// Whether another check of the file system can raise the shortfall, because nothing was available at the start.
    var canLearn: Bool { start.availableBytes <= 0 }

    /// Accounts for the space that is reserved for root, if less than the reserve was free at the start.
    ///
    /// In that case nothing becomes available until the reserve is complete again, and the size of the reserve is not
    /// known until then. Once space is available, the reserve is the difference between the free and the available space;
    /// as long as nothing is available, it is at least the free space. If the file system frees blocks with a delay,
    /// neither number changes before.
    mutating func learn(_ space: FileSystemSpace) {
        guard canLearn else { return }
        let reserved = space.freeBytes - max(0, space.availableBytes)
        shortfall = max(shortfall, floor + reserved - start.freeBytes)
    }
}
