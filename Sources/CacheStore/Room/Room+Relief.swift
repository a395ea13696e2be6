// SPDX-License-Identifier: Apache-2.0

package import Platform

/// How room is made: from the list of the last sweep, or by a sweep.
extension Room {
    /// Runs `attempt`, and again after each collection that has set something free, where the disk or somebody's quota
    /// is full.
    ///
    /// In bounded time: no longer than ``RoomTerms/patience`` says, and once more at most where nothing was set free but
    /// what the attempt itself may have left. The caller holds no lock.
    ///
    /// - Parameter length: of the value.
    func makingSpace<Value>(
        forLength length: Int,
        now: Timestamp,
        _ terms: RoomTerms = RoomTerms(),
        _ attempt: (inout RoomTerms) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        var terms = terms
        var wait = wait(terms)
        while true {
            do throws(CacheError) {
                return try attempt(&terms)
            } catch {
                guard error.cause?.tellsOfFullDisk ?? false, makeSpace(Int64(length), now: now, &wait) else {
                    throw error
                }
                terms.spent = max(terms.spent, wait.elapsed)
            }
        }
    }

    /// Collects what may go, where the disk or a quota is full: what is of no use to anybody, and, where limits are set,
    /// so many bytes of the least recently used values; false where that has set nothing free in time.
    func makeSpace(_ bytes: Int64, now: Timestamp, _ wait: inout JanitorWait) -> Bool {
        wait.begin()
        let pace = SweepPace(until: wait.deadline)
        if let known = currentImpasse(pace), known != .busy { return false }
        if wait.isOver, !wait.mayTryInVain() { return false }
        do throws(CacheError) {
            switch try relieveFullDisk(bytes, now: now + wait.elapsed, pace) {
            case .done: return true
            case .little, .impossible, .unfinished:
                // Another process may have set something free just before.
                return wait.mayTryInVain()
            case .busy:
                // What another process sets free is as good; where none is at it, what writers have claimed is
                // waited for.
                guard try wait.pause() else { return false }
                return try wait.pauseUntilFree()
            }
        } catch {
            // That the disk is full is what the caller tells then, and is why.
            parts.counters.add(.roomFailure)
            return false
        }
    }

    /// The same for a file that is not the store's.
    package func makeSpace(_ bytes: Int64, now: Timestamp) -> Bool {
        var wait = wait(RoomTerms())
        return makeSpace(bytes, now: now, &wait)
    }

    private func relieveFullDisk(
        _ bytes: Int64,
        now: Timestamp,
        _ pace: SweepPace
    ) throws(CacheError) -> Relief {
        let limits = configuration.limits
        guard limits.areBounding else {
            if let relief = currentImpasse(pace) { return relief }
            return try sweep(for: Excess(), now: now, pace: pace)
        }
        // With room for what an entry and new directories take.
        var excess = Excess(freeSpace: bytes + 4 * parts.directory.fileSystem.blockSize)
        if let occupancy = try occupancy(limits, entering: 1) {
            let missing = limits.excess(of: occupancy, over: CacheLimits.roomMark)
            if missing.reason == .freeSpace { excess.freeSpace = max(excess.freeSpace, missing.freeSpace) }
        }
        return try relieve(excess, now: now, pace: pace)
    }

    /// Has a directory counted whose control file was made anew, before more is stored in it: nobody knows what is
    /// there.
    ///
    /// Where somebody else does, it waits for that, as long as for room. Where it can't be counted, as not all of it can
    /// be read, it looks again after ten times as long, and meanwhile values are stored without a limit.
    func countIfUnknown(now: Timestamp, _ wait: inout JanitorWait) throws(CacheError) {
        while let usage = parts.control.usage, !usage.isCounted, !wait.isOver {
            if let end = uncountableUntil.withLock({ $0 }), ContinuousClock.now < end { return }
            wait.begin()
            let start = ContinuousClock.now
            if try sweep(for: Excess(), now: now, pace: SweepPace(until: wait.deadline)) == .busy {
                if try !wait.pause() { return }
            } else if let usage = parts.control.usage, !usage.isCounted {
                let pause = max(.seconds(1), (ContinuousClock.now - start) * Self.futileRest)
                uncountableUntil.withLock { $0 = .now + pause }
            }
        }
    }

    /// Removes what has to go: what is expired or named by nobody, as far as that promises enough, then the least
    /// recently used.
    ///
    /// A sweep finds all of that, for a look at every file. In between the list that it leaves tells who is to go
    /// next: as long as that lasts, and not so much was replaced or removed since that orphans would do.
    ///
    /// - Parameter orphaned: bytes of values that are known to be named by no entry any more.
    package func relieve(
        _ excess: Excess,
        orphaned: Int64 = 0,
        now: Timestamp,
        pace: SweepPace
    ) throws(CacheError) -> Relief {
        if let relief = currentImpasse(pace) { return relief }
        let orphansMayDo = self.orphansMayDo(for: excess, orphaned)
        if !orphansMayDo {
            let report = try ListedEviction.run(excess, on: parts, now: now, pace: pace)
            guard let report else { return .busy }
            if !report.removed.isEmpty || !report.isExhausted { return .done }
        }
        // Where they do, nothing else has to go.
        let mark = orphansMayDo ? 1 : CacheLimits.lowMark
        return try sweep(for: excess, downTo: mark, now: now, pace: pace)
    }

    /// What the last sweep that has found nothing to evict would find again at that pace; nil: look.
    private func currentImpasse(_ pace: SweepPace) -> Relief? {
        guard let impasse = impasse.withLock({ $0 }), ContinuousClock.now < impasse.end, impasse.view == view
        else { return nil }
        // A sweep with more time may find something.
        if impasse.relief == .unfinished {
            guard let deadline = pace.deadline, deadline - .now <= impasse.effort * 2 else { return nil }
        }
        return impasse.relief
    }

    /// Whether the values of entries that were replaced or removed since the last mark may come to half of what has
    /// to go.
    ///
    /// Each is taken to be as large as the mean. Then to evict first would cost values that are in use.
    private func orphansMayDo(for excess: Excess, _ orphaned: Int64) -> Bool {
        guard excess.bytes > 0, let usage = parts.control.usage, usage.entries > 0 else { return false }
        let replaced = Double(parts.control.replacedEntries)
        let expected = max(Double(orphaned), Double(usage.bytes) / Double(usage.entries) * replaced)
        return expected >= max(1, Double(excess.bytes) / 2)
    }

    /// Sweeps down to a mark, and below where more than that has to go: the list may have to do without who is to go, and a
    /// sweep knows of no claims.
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
        let report = try Sweep.runIfDue(request, on: parts, now: now) { _ in true }
        guard let report else { return .busy }
        // Where it counted otherwise than was known, or others stored or gave up something meanwhile, it is another
        // question now.
        let isLittle = report.removed.allSatisfy { $0.key == .orphan && $0.value.count <= 1 }
        if !report.removed.isEmpty { return isLittle ? .little : .done }
        if limits.areBounding, before != view { return .done }
        // In use at this moment, and not for ever: what is still spared when nothing else has changed will be again.
        let isInUse =
            report.isComplete && report.spared > 0 && report.unreadable.isEmpty
            && impasse.withLock { $0?.view } != before
        // What stays although it should go is nobody's to evict; or it is not there yet; or time ran out before it was
        // found.
        let isPassing = before.claimed != ClaimedRoom() || isInUse
        let effort = ContinuousClock.now - begin
        let impasse = Impasse(
            end: .now + (isPassing ? effort * Self.futileRest : max(.seconds(1), effort * Self.futileRest)),
            view: limits.areBounding ? before : view,
            effort: effort,
            relief: isPassing ? .busy : report.isComplete ? .impossible : .unfinished
        )
        self.impasse.withLock { $0 = impasse }
        return impasse.relief
    }

    private func limitsOfSweep(
        for excess: Excess,
        downTo mark: Double,
        _ limits: CacheLimits
    ) throws(CacheError) -> CacheLimits {
        let lowered = limits.lowered(overhead: parts.overhead, to: mark)
        let usage = parts.control.usage.flatMap { $0.isCounted ? $0 : nil }
        let isOfFreeSpace = excess.reason == .freeSpace
        guard usage != nil || isOfFreeSpace else { return lowered }
        let present = Occupancy(
            bytes: usage?.plausibleBytes ?? 0,
            overhead: parts.overhead,
            entries: usage?.plausibleEntries ?? 0,
            space: isOfFreeSpace || limits.minimumFree != nil ? try parts.directory.space() : nil
        )
        return lowered.lowered(by: excess, from: present)
    }

    /// What is known of the directory without a look at it.
    struct View: Equatable {
        var usage: StoreUsage?
        var claimed = ClaimedRoom()
        /// Entries that were replaced; counted where nothing is evicted, and only what they have left can go.
        var replaced = 0
    }

    /// That a sweep has found nothing to evict.
    struct Impasse {
        /// When to look again, if nothing changes before.
        let end: ContinuousClock.Instant
        let view: View
        /// How long it took.
        let effort: Duration
        /// ``Relief/busy`` where what writers have claimed may be evicted once it is stored, or is forgotten;
        /// ``Relief/unfinished`` where time ran out.
        let relief: Relief
    }

    private var view: View {
        guard configuration.limits.areBounding else { return View(replaced: parts.control.replacedEntries) }
        return View(usage: parts.control.usage, claimed: parts.control.claimed)
    }

    /// How many times longer than a sweep that found nothing to evict it takes until the next: so that such sweeps
    /// take a tenth of a processor at most.
    private static let futileRest = 10
}
