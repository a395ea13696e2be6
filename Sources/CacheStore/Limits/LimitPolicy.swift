// SPDX-License-Identifier: Apache-2.0

package import Platform

/// What a directory takes, against which its limits are held.
package struct Occupancy: Sendable, Equatable {
    /// Bytes on disk of entries and objects.
    package var bytes: Int64
    /// Bytes of what can't be evicted: directories, the control file.
    package var overhead: Int64 = 0
    package var entries: Int
    /// What the file system has, where a limit asks for it.
    package var space: FileSystemSpace?
    /// So many bytes of that are as good as taken.
    package var claimed: Int64 = 0
}

/// What has to go for a directory to be within its limits, or below a mark of them; 0 for a limit that holds.
package struct Excess: Sendable, Equatable {
    /// Entries too many.
    package var entries = 0
    /// Bytes on disk too many.
    package var size: Int64 = 0
    /// Bytes that have to become available on the file system.
    package var freeSpace: Int64 = 0

    /// Bytes that have to go, for whichever limit.
    package var bytes: Int64 { max(size, freeSpace) }

    /// Why the next entry goes: the limit that is passed, the first of entries, size and free space; nil: none is.
    package var reason: RemovalReason? {
        entries > 0 ? .entries : size > 0 ? .size : freeSpace > 0 ? .freeSpace : nil
    }

    /// Takes off what has gone.
    mutating func subtract(entries count: Int = 1, bytes: Int64) {
        entries -= count
        size -= bytes
        freeSpace -= bytes
    }
}

/// The marks between which a directory is kept, and what has to go for them: pure functions.
extension CacheLimits {
    /// A share of a limit at which the janitor begins to evict.
    ///
    /// The 5 % above it are what writers can fill while it comes.
    package static let highMark = 0.95
    /// To which it evicts then: a twentieth at a time, so that it need not come for every put, while not much is
    /// lost that would have been used again.
    package static let lowMark = 0.90

    /// Down to which a put that finds no room evicts: a hundredth more than it needs, so that not every put has to make
    /// its own room.
    package static let roomMark = 0.99

    /// How far `occupancy` is over a share of the limits.
    ///
    /// The directory's overhead comes off the size first: `mark` is a share of what is left.
    /// `mark` of a floor of free space is how much less than the rest may be taken: 5 % of the floor more stay free
    /// for each 5 % below 1.
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

    /// A share of a limit, rounded up: one of a single entry leaves that entry.
    private static func share(_ mark: Double, of limit: Int64) -> Int64 {
        mark == 1 ? limit : Int64((Double(max(0, limit)) * mark).rounded(.up))
    }

    /// What the janitor has to evict: down to the low mark, once the high one is passed.
    package func overflow(of occupancy: Occupancy) -> Excess? {
        excess(of: occupancy, over: Self.highMark).reason == nil
            ? nil : excess(of: occupancy, over: Self.lowMark)
    }

    /// The limits that a sweep has to bring about where the high mark is passed.
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

    /// The same where that leaves less than `excess` to go from what is there.
    func lowered(by excess: Excess, from present: Occupancy) -> CacheLimits {
        var limits = self
        let isOfFreeSpace = excess.reason == .freeSpace
        if excess.bytes > 0 {
            let rest = present.overhead + max(0, present.bytes - excess.bytes)
            if !isOfFreeSpace { limits.maximumSize = maximumSize.map { min($0, ByteCount(rest)) } }
            // Where the disk is full there need be no floor.
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

/// What has to become available on a file system for a sweep to keep its floor.
struct FreeSpaceGoal: Equatable {
    private let floor: Int64
    private let start: FileSystemSpace
    /// Bytes that were missing at the start, as far as is known; negative where there was more.
    private(set) var shortfall: Int64

    init(_ floor: CacheLimits.FreeSpace, at space: FileSystemSpace) {
        // Real sizes can be added to that.
        self.floor = min(floor.bytes(of: space.totalBytes), 1 << 62)
        start = space
        shortfall = self.floor - space.availableBytes
    }

    /// Whether another look at the file system can tell more: nothing was available at the start.
    var canLearn: Bool { start.availableBytes <= 0 }

    /// Takes account of what is reserved for root, where less than that was free at the start.
    ///
    /// Then nothing is available until all that is missing in it has become free, and how much is reserved does not show
    /// before. It is told by what is free and what is available later; as long as nothing is available it is at least
    /// as much as is free. Where the file system sets blocks free only later the one changes no more than the other.
    mutating func learn(_ space: FileSystemSpace) {
        guard canLearn else { return }
        let reserved = space.freeBytes - max(0, space.availableBytes)
        shortfall = max(shortfall, floor + reserved - start.freeBytes)
    }
}
