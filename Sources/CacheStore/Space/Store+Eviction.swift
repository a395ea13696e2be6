// SPDX-License-Identifier: Apache-2.0

package import Platform

/// Makes space, by an eviction from the list of the last sweep or by another sweep.
extension Store {
    /// Makes space if a call failed because the disk or a quota is full; returns whether to repeat the call.
    ///
    /// It returns true as long as collections free files, for ``SpaceWait/patience`` at most. If a collection has freed
    /// only a file that the call itself may have left, or nothing, it returns true once more. The caller holds no lock
    /// and no reservation.
    ///
    /// - Parameter length: the length of the value.
    func makesSpace(
        after error: CacheError,
        forLength length: Int,
        now: Timestamp,
        _ wait: inout SpaceWait
    ) -> Bool {
        guard error.cause?.isDiskFull ?? false else { return false }
        var fullDisk = wait.fullDisk ?? janitorWait(wait)
        let isMade = makeSpace(Int64(length), now: now, &fullDisk)
        wait.spent = max(wait.spent, fullDisk.elapsed)
        wait.fullDisk = fullDisk
        return isMade
    }

    /// Runs a collection because the disk or a quota is full; returns false if that freed nothing in time.
    ///
    /// The collection removes expired entries, orphans and stale temporary files. If limits are set, it also evicts
    /// `bytes` bytes of the least recently used values.
    func makeSpace(_ bytes: Int64, now: Timestamp, _ wait: inout JanitorWait) -> Bool {
        wait.begin()
        let pace = SweepPace(until: wait.deadline)
        if let known = currentFutileSweep(pace), known != .busy { return false }
        if wait.isOver, !wait.mayTryInVain() { return false }
        do throws(CacheError) {
            switch try relieveFullDisk(bytes, now: now + wait.elapsed, pace) {
            case .done: return true
            case .little, .impossible, .unfinished:
                // Another process may have freed space just before.
                return wait.mayTryInVain()
            case .busy:
                // Wait for the process that is making room, or else for the writers whose claims take the room.
                guard try wait.pause() else { return false }
                return try wait.pauseUntilFree()
            }
        } catch {
            // The caller reports that the disk is full, which is the cause.
            counters.add(.roomFailure)
            return false
        }
    }

    /// Makes space for a file that does not belong to the store.
    package func makeSpace(_ bytes: Int64, now: Timestamp) -> Bool {
        var wait = janitorWait(SpaceWait())
        return makeSpace(bytes, now: now, &wait)
    }

    private func relieveFullDisk(
        _ bytes: Int64,
        now: Timestamp,
        _ pace: SweepPace
    ) throws(CacheError) -> Relief {
        let limits = configuration.limits
        guard limits.areBounding else {
            if let relief = currentFutileSweep(pace) { return relief }
            return try sweep(for: Excess(), now: now, pace: pace)
        }
        // The additional blocks are for an entry and for new directories.
        var excess = Excess(freeSpace: bytes + 4 * directory.fileSystem.blockSize)
        if let occupancy = try occupancy(limits, entering: 1) {
            let missing = limits.excess(of: occupancy, over: CacheLimits.roomMark)
            if missing.reason == .freeSpace { excess.freeSpace = max(excess.freeSpace, missing.freeSpace) }
        }
        return try relieve(excess, now: now, pace: pace)
    }

    /// Counts the contents of the directory if no sweep has done so since its control file was created.
    ///
    /// If another process is counting, this call waits for it, as long as it would wait for room. If counting takes
    /// longer than that, values are stored until the values added reach a 32nd of a limit. If a part of the directory
    /// can't be read, the usage stays unknown, and values are stored without a limit. The next attempt to count begins
    /// after ten times the duration of this one, and after a second at least.
    ///
    /// - Throws: ``CacheError/Code/noRoom`` if that 32nd is used up, or if the process that counts makes no progress: it
    ///   may be stopped indefinitely.
    func countIfUnknown(_ need: SpaceNeed, now: Timestamp, _ wait: inout SpaceWait) throws(CacheError) {
        guard let usage = control.usage, !usage.isCounted else { return }
        var janitor = janitorWait(wait)
        defer { wait.spent += janitor.elapsed }
        try countIfUnknown(need, now: now, &janitor)
    }

    private func countIfUnknown(
        _ need: SpaceNeed,
        now: Timestamp,
        _ wait: inout JanitorWait
    ) throws(CacheError) {
        while let usage = control.usage, !usage.isCounted, !wait.isOver {
            if let failure = space.failedCount.withLock({ $0 }), ContinuousClock.now < failure.end {
                if failure.isUnreadable { return }
                break
            }
            wait.begin()
            let start = ContinuousClock.now
            let relief = try sweep(for: Excess(), now: now, pace: SweepPace(until: wait.deadline))
            if relief == .busy {
                guard try !wait.pause() else { continue }
                guard let hindrance = wait.hindrance else { break }
                try refuseUncounted("and \(hindrance)")
                return
            } else if let usage = control.usage, !usage.isCounted {
                let pause = max(.seconds(1), (ContinuousClock.now - start) * Self.futileRest)
                space.failedCount.withLock {
                    $0 = SpaceState.FailedCount(end: .now + pause, isUnreadable: relief != .unfinished)
                }
            }
        }
        // An uncounted usage includes only what was added after the control file was created. Before, the directory
        // was within its limits.
        let (limits, claimed) = (configuration.limits, control.claimed)
        guard let usage = control.usage, !usage.isCounted else { return }
        let bytes = usage.plausibleBytes + claimed.bytes + need.bytes
        let entries = usage.plausibleEntries + claimed.entries + need.entries
        let mostBytes = limits.maximumSize.map { $0.bytes / Self.partForUncounted } ?? .max
        let mostEntries = limits.maximumEntries.map { max(1, $0 / Int(Self.partForUncounted)) } ?? .max
        if bytes > mostBytes || entries > mostEntries {
            try refuseUncounted("and that takes longer than \(wait.patience): run `diskcache gc`")
        }
    }

    /// Until the directory is counted, a limit divided by this number may be added.
    private static let partForUncounted: Int64 = 32

    private func refuseUncounted(_ reason: String) throws(CacheError) {
        let limits = configuration.limits
        guard limits.maximumSize != nil || limits.maximumEntries != nil else { return }
        counters.add(.roomFailure)
        throw CacheError(
            .noRoom,
            to: "store a value in",
            path: directory.path,
            detail: "it has a limit, its contents have not been counted yet, \(reason)"
        )
    }

    /// Removes the excess: first expired entries and orphans, if they may be enough, and otherwise the least recently
    /// used entries.
    ///
    /// A sweep checks every file and leaves a list of the next candidates. Evictions take candidates from this list until
    /// it is used up, or until enough entries may have expired or have been replaced or removed.
    package func relieve(_ excess: Excess, now: Timestamp, pace: SweepPace) throws(CacheError) -> Relief {
        if let relief = currentFutileSweep(pace) { return relief }
        let garbageMayDo = self.garbageMayDo(for: excess, now)
        if !garbageMayDo {
            let report = try ListedEviction.run(excess, on: self, now: now, pace: pace)
            guard let report else { return .busy }
            if !report.removed.isEmpty || !report.isExhausted { return .done }
        }
        // If removing garbage frees enough, the sweep evicts nothing.
        let mark = garbageMayDo ? 1 : CacheLimits.lowMark
        return try sweep(for: excess, downTo: mark, now: now, pace: pace)
    }

    /// Returns the result of the last sweep that found nothing to evict if another sweep at that pace would find the
    /// same; otherwise returns nil.
    private func currentFutileSweep(_ pace: SweepPace) -> Relief? {
        guard let futileSweep = space.futileSweep.withLock({ $0 }), ContinuousClock.now < futileSweep.end,
            futileSweep.view == view
        else { return nil }
        // A sweep that has more time may find something.
        if futileSweep.relief == .unfinished {
            guard let deadline = pace.deadline, deadline - .now <= futileSweep.effort * 2 else { return nil }
        }
        return futileSweep.relief
    }

    /// Returns whether garbage may be at least half of the excess: values of entries that were replaced or removed, or
    /// expired entries.
    ///
    /// If so, evicting first would remove values that are in use. If a rule that removes many values has come into force
    /// since the last full sweep, those values may be enough. About six system calls if enough entries may have expired
    /// or any rule is in force, otherwise none.
    private func garbageMayDo(for excess: Excess, _ now: Timestamp) -> Bool {
        let control = control
        func isHalf(_ bytes: Int64, entries: Int) -> Bool {
            bytes >= (excess.bytes + 1) / 2 && entries >= (excess.entries + 1) / 2
        }
        let orphans = control.replacedBytes
        if isHalf(orphans, entries: 0) { return true }
        let expired = control.expired(by: now)
        let mayHaveExpired = isHalf(orphans + expired.bytes, entries: expired.entries)
        guard mayHaveExpired || control.rulesVersion != 0 else { return false }
        guard let last = SweepRecord.last(in: directory), let full = last.lastFull else { return true }
        let latestRule = Timestamp(milliseconds: Int64(clamping: control.rulesVersion))
        guard mayHaveExpired || full.began < latestRule else { return false }
        // The counts of garbage are estimates. If the last sweep found less, sweeps for garbage take at most a tenth of a
        // processor.
        let found = last.report.garbage
        if isHalf(found.bytes, entries: found.count) { return true }
        let elapsed = Timestamp.now - full.began
        return elapsed < .zero || elapsed >= full.busy * Self.futileRest
    }

    /// Sweeps until the usage is below a mark of the limits, and further if the excess is larger, because a sweep does
    /// not see claims.
    func sweep(
        for excess: Excess,
        downTo mark: Double = CacheLimits.lowMark,
        now: Timestamp,
        pace: SweepPace
    ) throws(CacheError) -> Relief {
        let limits = configuration.limits
        var request = SweepRequest()
        request.limits = try limitsOfSweep(for: excess, downTo: mark, limits)
        request.stripePatience = SweepRequest.hurriedStripePatience
        request.partialLife = .zero
        request.pace = pace
        let (begin, before) = (ContinuousClock.now, view)
        let report = try Sweep.runIfDue(request, on: self, now: now) { _ in true }
        guard let report else { return .busy }
        // If the usage or the claims changed during the sweep, another attempt may succeed.
        let isLittle = report.removed.allSatisfy { $0.key == .orphan && $0.value.count <= 1 }
        if !report.removed.isEmpty { return isLittle ? .little : .done }
        if limits.areBounding, before != view { return .done }
        // Spared entries are in use and may be evicted later. If entries are spared twice and nothing else has changed,
        // they will be spared again.
        let isInUse =
            report.isComplete && report.spared > 0 && report.unreadable.isEmpty
            && space.futileSweep.withLock { $0?.view } != before
        // The excess is in use, or is claimed and not stored yet, or the time ran out, or nothing can be evicted.
        let isPassing = before.claimed != ClaimedSpace() || isInUse
        let effort = ContinuousClock.now - begin
        let futileSweep = SpaceState.FutileSweep(
            end: .now + (isPassing ? effort * Self.futileRest : max(.seconds(1), effort * Self.futileRest)),
            view: limits.areBounding ? before : view,
            effort: effort,
            relief: isPassing ? .busy : report.isComplete ? .impossible : .unfinished
        )
        space.futileSweep.withLock { $0 = futileSweep }
        return futileSweep.relief
    }

    private func limitsOfSweep(
        for excess: Excess,
        downTo mark: Double,
        _ limits: CacheLimits
    ) throws(CacheError) -> CacheLimits {
        let lowered = limits.lowered(overhead: overhead, to: mark)
        let usage = control.usage.flatMap { $0.isCounted ? $0 : nil }
        let isOfFreeSpace = excess.reason == .freeSpace
        guard usage != nil || isOfFreeSpace else { return lowered }
        let present = Occupancy(
            bytes: usage?.plausibleBytes ?? 0,
            overhead: overhead,
            entries: usage?.plausibleEntries ?? 0,
            space: isOfFreeSpace || limits.minimumFree != nil ? try directory.space() : nil
        )
        return lowered.lowered(by: excess, from: present)
    }

    private var view: SpaceState.View {
        guard configuration.limits.areBounding else {
            return SpaceState.View(replaced: control.replacedEntries)
        }
        return SpaceState.View(usage: control.usage, claimed: control.claimed)
    }

    /// After a sweep that found nothing, no other begins for this many times its duration.
    ///
    /// So such sweeps take at most a tenth of a processor. The same applies to sweeps that look for expired entries.
    private static let futileRest = 10

    /// Returns the identifier of the process that runs the collection of `record`.
    ///
    /// Returns nil if this process can't see that process, which may be in another container.
    package func visibleSweeper(_ record: SweepRecord) -> Int32? {
        janitor.isHeld(by: record.process) ? record.process : nil
    }
}
