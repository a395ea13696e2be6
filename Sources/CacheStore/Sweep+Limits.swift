// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a sweep has to evict for its limits to hold.
extension Sweep {
    /// What has to become available on the file system; nil: nothing has to.
    ///
    /// Asked once, when the sweep begins: what it removes is added up from then on, so that a dry run and the run after
    /// it decide the same.
    func freeSpaceGoal() throws(StoreError) -> FreeSpaceGoal? {
        guard let floor = request.limits.minimumFree else { return nil }
        return FreeSpaceGoal(floor, at: try store.space())
    }

    /// What of these candidates to evict now; nil: nothing.
    func plan(_ places: ArraySlice<UInt32>, _ shortfall: Int64?) -> SweepPlan? {
        if places.isEmpty { return nil }
        let limits = request.limits
        return worker.state.value.withLock { state in
            let entries = state.candidates.entries
            let plan = SweepPlan(
                places.lazy.map { entries[Int($0)] },
                marks: state.marks,
                excess: state.excess(over: limits, shortfall)
            )
            return plan.count > 0 ? plan : nil
        }
    }

    /// How many candidates to look for, by what the control file says of the usage.
    ///
    /// Where it is wrong there is another pass, or some are looked for in vain.
    func wantedByUsage(_ shortfall: Int64?) -> Int {
        guard !request.expiredOnly, request.limits.areBounding else { return 0 }
        guard let usage = store.usage, usage.isCounted, usage.entries > 0 else {
            // Nothing is known but that much may have to go.
            return 1 << 19
        }
        var excess = SweepExcess()
        let (entries, bytes) = (usage.plausibleEntries, usage.plausibleBytes)
        if let maximum = request.limits.maximumEntries { excess.entries = entries - maximum }
        if let maximum = request.limits.maximumSize { excess.size = bytes + store.overhead - maximum }
        excess.freeSpace = shortfall ?? 0
        return Self.wanted(excess, entries: entries, bytes: bytes)
    }

    /// The same by what a pass has found, for the next one.
    func wantedStill(_ shortfall: Int64?) -> Int {
        let limits = request.limits
        let (excess, report) = worker.state.value.withLock { ($0.excess(over: limits, shortfall), $0.report) }
        let bytes = report.entries.bytes + report.objects.bytes
        return Self.wanted(excess, entries: report.entries.count, bytes: bytes)
    }

    /// As many of the usual size as have to go, and a sixteenth more as they may be smaller or be spared, or else those
    /// that the next trims are to find.
    private static func wanted(_ excess: SweepExcess, entries: Int, bytes: Int64) -> Int {
        let size = max(1, bytes / Int64(max(1, entries)))
        let count = max(0, excess.entries, Int(max(excess.size, excess.freeSpace, 0) / size))
        let going = min(count, max(0, entries))
        return going + max(going / 16, listLength(ofEntries: max(0, entries - going)))
    }

    /// How many candidates to keep for the next trims: a quarter of all, which is what goes in two and a half trims
    /// from 95 to 85 per cent; at most 12 MB of them.
    static func listLength(ofEntries count: Int) -> Int {
        min(max(count / 4, 8192), 131_072)
    }

    /// Writes down who is to go next, for ``evictListed(_:on:now:pace:)``; nothing of a dry run, where not everything
    /// could be read, or where no limit is set for which anything would have to go: it is a write of up to 12 MB.
    ///
    /// Only entries whose objects they alone name: so that object can go with the entry, whenever that is. Nothing that a
    /// stripe guards which was not to be had: who held it may have published since what the mark has not seen.
    func keepCandidates(_ places: ArraySlice<UInt32>, _ stamp: Timestamp) {
        guard !request.isDryRun, request.limits.areBounding else { return }
        let list = worker.state.value.withLock { $0.list(of: places) }
        guard let list else { return }
        CandidateList(stamp: stamp, clock: worker.clock, count: list.count).write(list, in: store.directory)
    }
}

/// What has to become available on a file system.
struct FreeSpaceGoal: Equatable {
    private let floor: Int64
    private let start: FileSystemSpace
    /// Bytes that were missing at the start, as far as is known; negative where there was more.
    private(set) var shortfall: Int64

    init(_ floor: FreeSpaceFloor, at space: FileSystemSpace) {
        self.floor = floor.bytes(of: space.totalBytes)
        start = space
        shortfall = self.floor - space.availableBytes
    }

    /// Takes account of what is reserved for root, where less than that was free at the start.
    ///
    /// Then nothing is available until all that is missing in it has become free, and how much is reserved does not show
    /// before. It is told by what is free and what is available later; as long as nothing is available it is at least
    /// as much as is free. Where the file system sets blocks free only later the one changes no more than the other.
    mutating func learn(_ space: FileSystemSpace) {
        guard start.availableBytes <= 0 else { return }
        let reserved = space.freeBytes - max(0, space.availableBytes)
        shortfall = max(shortfall, floor + reserved - start.freeBytes)
    }

    /// The same by a look at the file system.
    mutating func learn(from store: Store) throws(StoreError) {
        guard start.availableBytes <= 0 else { return }
        learn(try store.space())
    }
}

extension SweepState {
    /// What is over the limits now.
    ///
    /// The size is that of the whole directory: what entries and objects may take is what the rest leaves.
    func excess(over limits: SweepLimits, _ shortfall: Int64?) -> SweepExcess {
        var excess = SweepExcess()
        if let maximum = limits.maximumEntries { excess.entries = report.entries.count - maximum }
        if let maximum = limits.maximumSize {
            excess.size = report.entries.bytes + report.objects.bytes + overhead - maximum
        }
        if let shortfall { excess.freeSpace = shortfall - removed.bytes }
        return excess
    }

    /// The candidates at `places` that may be kept for later, as many as are wanted; nil: none may.
    fileprivate func list(of places: ArraySlice<UInt32>) -> [ListedCandidate]? {
        if hasUnreadableEntries { return nil }
        let length = Sweep.listLength(ofEntries: report.entries.count)
        let skippedObjects = skipped[.objects, default: []]
        let skippedEntries = skipped[.entries, default: []]
        var list: [ListedCandidate] = []
        list.reserveCapacity(min(length, places.count))
        for place in places {
            if list.count == length { break }
            let entry = candidates.entries[Int(place)]
            guard let mark = marks.mark(of: entry.content), mark.references == 1, mark.presence == .present,
                !skippedObjects.contains(entry.content.stripe),
                !skippedEntries.contains(entry.key.stripe)
            else { continue }
            list.append(ListedCandidate(entry: entry, objectSize: mark.allocatedSize))
        }
        return list
    }
}
