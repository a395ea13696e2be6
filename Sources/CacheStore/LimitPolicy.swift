// SPDX-License-Identifier: Apache-2.0

package import Platform

/// What a directory takes, against which its limits are held.
package struct Occupancy: Sendable, Equatable {
    /// Bytes on disk of entries and objects.
    package var bytes: Int64
    /// Of what is there beside them and can't be evicted: directories, the control file.
    package var overhead: Int64
    package var entries: Int
    /// What the file system has, where a limit asks for it.
    package var space: FileSystemSpace?

    package init(bytes: Int64, overhead: Int64 = 0, entries: Int, space: FileSystemSpace? = nil) {
        self.bytes = bytes
        self.overhead = overhead
        self.entries = entries
        self.space = space
    }
}

extension FileSystemSpace {
    /// The same with so many bytes less available.
    func taking(_ bytes: Int64) -> FileSystemSpace {
        FileSystemSpace(
            totalBytes: totalBytes,
            availableBytes: availableBytes - bytes,
            freeBytes: freeBytes,
            totalInodes: totalInodes,
            availableInodes: availableInodes,
            isReadOnly: isReadOnly
        )
    }
}

/// What has to go for a directory to be within its limits, or below a mark of them.
package struct LimitExcess: Sendable, Equatable {
    package var bytes: Int64
    package var entries: Int
    /// Which limit it is: the first of size, entries and free space.
    package var reason: SweepReason
}

/// The marks between which a directory is kept.
///
/// Pure functions: what to evict, and when, of the design's section 5.
extension SweepLimits {
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

    /// Whether they bound what the directory takes.
    package var areBounding: Bool { maximumSize != nil || maximumEntries != nil || minimumFree != nil }

    /// How far `occupancy` is over a share of the limits; nil: it is not.
    ///
    /// Of the size what the directory takes by itself comes off first: a share of what is left.
    /// `mark` of a floor of free space is how much less than the rest may be taken: 5 % of the floor more stay free
    /// for each 5 % below 1.
    package func excess(of occupancy: Occupancy, over mark: Double = 1) -> LimitExcess? {
        var excess: LimitExcess?
        func add(_ reason: SweepReason, bytes: Int64 = 0, entries: Int = 0) {
            guard bytes > 0 || entries > 0 else { return }
            excess = LimitExcess(
                bytes: max(excess?.bytes ?? 0, bytes),
                entries: max(excess?.entries ?? 0, entries),
                reason: excess?.reason ?? reason
            )
        }
        if let maximumSize {
            let room = Double(max(0, maximumSize - occupancy.overhead))
            add(.size, bytes: occupancy.bytes - Int64((room * mark).rounded(.up)))
        }
        if let maximumEntries {
            // Rounded up, so that a limit of one entry is none of no entry.
            let limit = Int((Double(maximumEntries) * mark).rounded(.up))
            add(.entries, entries: occupancy.entries - limit)
        }
        if let minimumFree, let space = occupancy.space {
            let floor = Double(minimumFree.bytes(of: space.totalBytes)) * (2 - mark)
            add(.freeSpace, bytes: Int64(floor) - space.availableBytes)
        }
        return excess
    }

    /// What the janitor has to evict: down to the low mark, once the high one is passed.
    package func overflow(of occupancy: Occupancy) -> LimitExcess? {
        excess(of: occupancy, over: Self.highMark) == nil ? nil : excess(of: occupancy, over: Self.lowMark)
    }

    /// The limits that a sweep has to bring about where the high mark is passed.
    package func lowered(overhead: Int64) -> SweepLimits {
        var limits = self
        limits.maximumSize = maximumSize.map { size in
            overhead + Int64((Double(max(0, size - overhead)) * Self.lowMark).rounded(.up))
        }
        limits.maximumEntries = maximumEntries.map { Int((Double($0) * Self.lowMark).rounded(.up)) }
        limits.minimumFree = minimumFree.map { floor in
            switch floor {
            case .bytes(let bytes): .bytes(Int64(Double(bytes) * (2 - Self.lowMark)))
            case .share(let share): .share(min(1, share * (2 - Self.lowMark)))
            }
        }
        return limits
    }

    /// The same where that leaves less than `excess` to go from what is there.
    func lowered(by excess: LimitExcess, from present: Occupancy) -> SweepLimits {
        var limits = self
        if excess.bytes > 0 {
            let rest = present.overhead + max(0, present.bytes - excess.bytes)
            if excess.reason != .freeSpace { limits.maximumSize = maximumSize.map { min($0, rest) } }
            // Where the disk is full there need be no floor.
            if minimumFree != nil || excess.reason == .freeSpace, let space = present.space {
                let floor = minimumFree?.bytes(of: space.totalBytes) ?? 0
                limits.minimumFree = .bytes(max(floor, space.availableBytes + excess.bytes))
            }
        }
        if excess.entries > 0 {
            let rest = max(0, present.entries - excess.entries)
            limits.maximumEntries = maximumEntries.map { min($0, rest) }
        }
        return limits
    }
}
