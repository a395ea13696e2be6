// SPDX-License-Identifier: Apache-2.0

package import Platform
import Synchronization

/// How an attempt to make room ended.
package enum Relief: Sendable, Equatable {
    /// Something was removed, or others have done it.
    case done
    /// Another process is at it.
    case busy
    /// There is nothing left that could go.
    case impossible
}

/// How a directory is kept within its limits while it is written to.
///
/// Every put of new bytes claims what it will take in the usage that all processes share, before it writes: so
/// however many write at once, together they stay below the limit. Who finds no room makes some, or waits while
/// somebody else does. A claim of a killed process is forgotten within a minute of further claims
/// (``Control/claim(_:)``).
extension Store {
    /// What the directory takes, as all processes have added it up; nil where that is not known: without a control
    /// file, or before the first sweep of one that was made anew.
    ///
    /// One system call where a minimum of free space is set, else none.
    package func occupancy(_ limits: SweepLimits) throws(StoreError) -> Occupancy? {
        try occupancy(limits, entering: 0)
    }

    /// The same with so many entries more, whose bytes are claimed already: what is to stay free is claimed by taking
    /// it off what is available.
    private func occupancy(_ limits: SweepLimits, entering: Int) throws(StoreError) -> Occupancy? {
        guard let usage, usage.isCounted else { return nil }
        return Occupancy(
            bytes: usage.plausibleBytes + control.claimedBytes,
            overhead: overhead,
            entries: usage.plausibleEntries + entering,
            space: limits.minimumFree == nil ? nil : try space().taking(control.claimedBytes)
        )
    }

    private func space() throws(StoreError) -> FileSystemSpace {
        try describing("look at the file system of", directory.path) { () throws(Errno) in
            try directory.root.descriptor.fileSystemSpace()
        }
    }

    /// Bytes on disk that are to be reckoned with beside entries and objects: what the last sweep found, and at least
    /// what there will be once every shard is made.
    package var overhead: Int64 { max(control.overhead ?? 0, directory.usualOverhead) }

    /// For how long what was evicted last for want of room had not been used; nil where nothing was.
    package var horizon: Duration? { control.horizon }

    /// What has to go to be below the low mark, where the high one is passed.
    package func overflow() throws(StoreError) -> LimitExcess? {
        let limits = configuration.limits
        guard limits.areBounding, let occupancy = try occupancy(limits) else { return nil }
        return limits.overflow(of: occupancy)
    }

    /// Whether the high mark is passed, so that nobody who could evict should take a rest; false also where that can't
    /// be told: who goes on meets the reason.
    package var isPressed: Bool {
        do throws(StoreError) {
            return try overflow() != nil
        } catch {
            return false
        }
    }

    /// Has `body` called when a put passes the high mark: often, and on the thread that puts, so it should only wake
    /// somebody.
    package func onPressure(_ body: @escaping @Sendable () -> Void) {
        pressed.withLock { $0 = body }
    }

    // MARK: Claims

    /// Claims room for a value of `length` bytes and its entry, waiting for it where there is none.
    ///
    /// What was claimed is to be given back once the value is stored, and counted as it was found, or has failed;
    /// nil where nothing had to be claimed.
    ///
    /// - Throws: ``StoreError/Code/valueTooLarge`` for one that can never fit, ``StoreError/Code/noRoom`` where
    ///   nothing could be evicted within ``StoreOptions/roomPatience``.
    func claimRoom(forLength length: Int, now: Timestamp) throws(StoreError) -> RoomClaim? {
        if followed.isDue() { followConfiguration() }
        let configuration = configuration
        try refuse(length, configuration)
        guard configuration.limits.areBounding else { return nil }
        try countIfUnknown(now: now)
        let bytes = directory.allocation(of: length) + entries.usualAllocation
        switch try claim(bytes, configuration.limits) {
        case .granted(let claim): return claim
        case .refused: return try waitForRoom(bytes, now)
        }
    }

    /// Gives back what was claimed.
    func giveBack(_ claim: RoomClaim?) {
        if let claim { control.giveBack(claim) }
    }

    /// The length of the longest value that the limits allow.
    var longestValue: Int64? {
        let configuration = configuration
        let room = configuration.limits.maximumSize.map { max(0, $0 - overhead) }
        guard let most = configuration.maximumValueSize else { return room }
        return min(most, room ?? most)
    }

    private func refuse(_ length: Int, _ configuration: DirectoryConfiguration) throws(StoreError) {
        let room = configuration.limits.maximumSize.map { $0 - overhead }
        if let most = configuration.maximumValueSize, Int64(length) > most {
            throw tooLarge(length, "the longest value is \(most) bytes")
        }
        if let room, directory.allocation(of: length) + entries.usualAllocation > room {
            throw tooLarge(length, "all values together may take \(max(0, room)) bytes")
        }
    }

    private func tooLarge(_ length: Int, _ limit: String) -> StoreError {
        StoreError(.valueTooLarge, "store \(length) bytes in", path: directory.path, detail: limit)
    }

    /// How asking for room ended.
    private enum ClaimOutcome {
        /// nil: nobody counts here.
        case granted(RoomClaim?)
        /// So much has to go first.
        case refused(LimitExcess)
    }

    private func claim(_ bytes: Int64, _ limits: SweepLimits) throws(StoreError) -> ClaimOutcome {
        // The claim first, the look afterwards: of two at once at least one sees the other's.
        let claim = control.claim(bytes)
        do throws(StoreError) {
            guard let occupancy = try occupancy(limits, entering: 1) else { return .granted(claim) }
            guard let excess = limits.excess(of: occupancy) else {
                if limits.overflow(of: occupancy) != nil, let pressed = pressed.withLock({ $0 }) { pressed() }
                return .granted(claim)
            }
            giveBack(claim)
            return .refused(excess)
        } catch {
            giveBack(claim)
            throw error
        }
    }

    private func waitForRoom(_ bytes: Int64, _ now: Timestamp) throws(StoreError) -> RoomClaim? {
        counters.add(.roomWait)
        let begin = ContinuousClock.now
        var backoff = Backoff()
        var generator = SystemRandomNumberGenerator()
        while true {
            let limits = configuration.limits
            let excess: LimitExcess
            switch try claim(bytes, limits) {
            case .granted(let claim): return claim
            case .refused(let found): excess = found
            }
            let elapsed = ContinuousClock.now - begin
            let relief = try relieve(excess.widened(limits), now: now + elapsed)
            guard relief != .impossible, elapsed < roomPatience else {
                counters.add(.roomFailure)
                throw noRoom(bytes, excess, relief)
            }
            if relief == .busy { sleepThread(for: backoff.next(using: &generator)) }
            if followed.isDue() { followConfiguration() }
        }
    }

    private func noRoom(_ bytes: Int64, _ excess: LimitExcess, _ relief: Relief) -> StoreError {
        let limit = "it is at its limit of \(excess.reason.limitName)"
        return StoreError(
            .noRoom,
            "store \(bytes) bytes in",
            path: directory.path,
            detail: relief == .impossible
                ? "\(limit), and nothing is left to evict"
                : "\(limit), and no room was made in \(roomPatience)"
        )
    }

    // MARK: Relief

    /// Removes what has to go: what is expired or named by nobody, as far as that promises enough, then the least
    /// recently used.
    ///
    /// A sweep finds all of that, for a look at every file. In between the list that it leaves tells who is to go
    /// next: as long as that lasts, and not so much was replaced or removed since that orphans would do.
    package func relieve(
        _ excess: LimitExcess,
        now: Timestamp,
        pace: SweepPace = SweepPace()
    ) throws(StoreError) -> Relief {
        if let impasse = impasse.withLock({ $0 }), ContinuousClock.now < impasse.end, impasse.view == view {
            return impasse.relief
        }
        if !orphansMayDo(for: excess) {
            let goal = EvictionGoal(bytes: excess.bytes, entries: excess.entries, reason: excess.reason)
            let report = try Sweep.evictListed(goal, on: self, now: now, pace: pace)
            guard let report else { return .busy }
            if report.evicted.count > 0 || !report.isExhausted { return .done }
        }
        return try sweepForRoom(excess, now: now, pace: pace)
    }

    /// Whether the values of entries that were replaced or removed since the last mark may come to half of what has
    /// to go.
    ///
    /// Each is taken to be as large as the mean. Then to evict first would cost values that are in use.
    private func orphansMayDo(for excess: LimitExcess) -> Bool {
        guard excess.bytes > 0, let usage, usage.entries > 0 else { return false }
        let replaced = Double(control.replacedEntries)
        return Double(usage.bytes) / Double(usage.entries) * replaced >= max(1, Double(excess.bytes) / 2)
    }

    /// Sweeps down to the low mark, and below where more than that has to go: the list may have to do without who is
    /// to go, and a sweep knows of no claims.
    func sweepForRoom(
        _ excess: LimitExcess,
        now: Timestamp,
        pace: SweepPace
    ) throws(StoreError) -> Relief {
        var request = SweepRequest()
        let limits = configuration.limits
        request.limits = limits.lowered(overhead: overhead)
        if let usage, usage.isCounted {
            let space = limits.minimumFree == nil ? nil : try space()
            let present = Occupancy(
                bytes: usage.plausibleBytes,
                overhead: overhead,
                entries: usage.plausibleEntries,
                space: space
            )
            request.limits = request.limits.lowered(by: excess, from: present)
        }
        request.pace = pace
        let (begin, before) = (ContinuousClock.now, view)
        let report = try Sweep.runIfDue(request, on: self, now: now) { _ in true }
        guard let report else { return .busy }
        // Where it counted otherwise than was known, or others stored or gave up something meanwhile, it is another
        // question now.
        guard report.isComplete, report.removed.isEmpty, before == view else { return .done }
        // In use at this moment, and not for ever.
        if report.spared > 0, report.unreadable.isEmpty { return .busy }
        // What stays although it should go is nobody's to evict; or it is not there yet.
        let isClaimed = before.claimed > 0
        let rest = (ContinuousClock.now - begin) * Self.futileRest
        let impasse = Impasse(
            end: .now + (isClaimed ? rest : max(.seconds(1), rest)),
            view: before,
            relief: isClaimed ? .busy : .impossible
        )
        self.impasse.withLock { $0 = impasse }
        return impasse.relief
    }

    /// What is known of the directory without a look at it.
    struct View: Equatable {
        let usage: StoreUsage?
        let claimed: Int64
    }

    /// That a sweep has found nothing to evict.
    struct Impasse {
        /// When to look again, if nothing changes before.
        let end: ContinuousClock.Instant
        let view: View
        /// ``Relief/busy`` where what writers have claimed may be evicted once it is stored, or is forgotten.
        let relief: Relief
    }

    private var view: View { View(usage: usage, claimed: control.claimedBytes) }

    /// How many times longer than a sweep that found nothing to evict it takes until the next: so that such sweeps
    /// take a tenth of a processor at most.
    static var futileRest: Int { 10 }
}

extension LimitExcess {
    /// With a hundredth of the limits on top, so that not every put has to make its own room.
    fileprivate func widened(_ limits: SweepLimits) -> LimitExcess {
        var excess = self
        if excess.bytes > 0 { excess.bytes += (limits.maximumSize ?? excess.bytes * 100) / 100 }
        if excess.entries > 0 { excess.entries += (limits.maximumEntries ?? 0) / 100 }
        return excess
    }
}

extension SweepReason {
    /// What the limit is of, for messages.
    fileprivate var limitName: String {
        switch self {
        case .entries: "keys"
        case .freeSpace: "free space"
        default: "size"
        }
    }
}
