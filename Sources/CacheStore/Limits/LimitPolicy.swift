// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The space and entries of a directory, which are compared with its limits.
package struct Occupancy: Sendable, Equatable {
    /// Bytes on disk of entries and objects.
    package var bytes: Int64
    /// Bytes that can't be evicted: directories, the control file.
    package var overhead: Int64 = 0
    package var entries: Int
    /// The space of the file system, if a limit depends on it.
    package var space: FileSystemSpace?
    /// The bytes of that space that count as taken already.
    package var claimed: Int64 = 0
}

/// The amounts to evict for a directory to be within its limits, or below a mark of them; 0 for a limit that holds.
package struct Excess: Sendable, Equatable {
    /// The number of entries over the limit.
    package var entries = 0
    /// The bytes on disk over the limit.
    package var size: Int64 = 0
    /// Bytes that have to become available on the file system.
    package var freeSpace: Int64 = 0

    /// Bytes to evict so that all limits hold.
    package var bytes: Int64 { max(size, freeSpace) }

    /// Why the next entry is evicted: the first limit exceeded, of entries, size and free space; nil if none is.
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

/// The marks between which a directory is kept, and the amounts to evict for them: pure functions.
extension CacheLimits {
    /// The share of a limit at which the janitor begins to evict.
    ///
    /// Writers can fill the 5 % above it until the janitor starts.
    package static let highMark = 0.95
    /// The share of a limit down to which the janitor evicts.
    ///
    /// A twentieth at a time, so that it need not run for every put, while few values are lost that would have been used
    /// again.
    package static let lowMark = 0.90

    /// The share of a limit down to which a put that finds no room evicts.
    ///
    /// A hundredth more than it needs, so that not every put has to make its own room.
    package static let roomMark = 0.99

    /// Returns how far `occupancy` exceeds a share of the limits.
    ///
    /// The directory's overhead is subtracted from the size first: `mark` is a share of the rest. For a floor of free space,
    /// 5 % of the floor more must stay free for each 5 % of `mark` below 1.
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

    /// Returns the amounts that the janitor has to evict: down to the low mark, once the high one is passed; otherwise nil.
    package func overflow(of occupancy: Occupancy) -> Excess? {
        excess(of: occupancy, over: Self.highMark).reason == nil
            ? nil : excess(of: occupancy, over: Self.lowMark)
    }

    /// Returns the limits that a sweep has to establish if the high mark is passed.
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

    /// Returns these limits, or lower ones by which a sweep evicts at least `excess` from the present occupancy.
    func lowered(by excess: Excess, from present: Occupancy) -> CacheLimits {
        var limits = self
        let isOfFreeSpace = excess.reason == .freeSpace
        if excess.bytes > 0 {
            let rest = present.overhead + max(0, present.bytes - excess.bytes)
            if !isOfFreeSpace { limits.maximumSize = maximumSize.map { min($0, ByteCount(rest)) } }
            // If the disk is full, there need not be a floor.
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

/// The bytes that must become available on a file system for a sweep to keep its floor.
struct FreeSpaceGoal: Equatable {
    private let floor: Int64
    private let start: FileSystemSpace
    /// Bytes that were missing at the start, if known; negative if more than the floor was available.
    private(set) var shortfall: Int64

    init(_ floor: CacheLimits.FreeSpace, at space: FileSystemSpace) {
        // Limited, so that real sizes can be added.
        self.floor = min(floor.bytes(of: space.totalBytes), 1 << 62)
        start = space
        shortfall = self.floor - space.availableBytes
    }

    /// Whether another check of the file system can show more: nothing was available at the start.
    var canLearn: Bool { start.availableBytes <= 0 }

    /// Accounts for the space that is reserved for root, if less than that was free at the start.
    ///
    /// Then nothing is available until all that is missing in the reserve has become free, and the size of the reserve is
    /// not known before. It is the difference between the free and the available space later; as long as nothing is
    /// available, it is at least the free space. If the file system frees blocks only later, neither number changes until
    /// then.
    mutating func learn(_ space: FileSystemSpace) {
        guard canLearn else { return }
        let reserved = space.freeBytes - max(0, space.availableBytes)
        shortfall = max(shortfall, floor + reserved - start.freeBytes)
    }
}
