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
    /// To find out what could go takes longer than there is time.
    case unfinished
}

/// How a directory is kept within its limits while it is written to.
///
/// Every put of new bytes claims what it will take in the usage that all processes share, before it writes: so
/// however many write at once, together they stay below the limit. Who finds no room makes some, or waits while
/// somebody else does. A claim of a killed or stopped process is forgotten within a second of further claims
/// (``Control/claim(_:)``); one that lives claims again where its own was forgotten, before it publishes.
extension Store {
    /// What the directory takes, as all processes have added it up; nil where that is not known: without a control
    /// file, or before the first sweep of one that was made anew.
    ///
    /// One system call where a minimum of free space is set, else none.
    package func occupancy(_ limits: SweepLimits) throws(StoreError) -> Occupancy? {
        try occupancy(limits, entering: 0)
    }

    /// The same with so many entries more, whose bytes are claimed already: what is to stay free is claimed by taking
    /// it off what is available, but for so many bytes that are `written` already.
    private func occupancy(
        _ limits: SweepLimits,
        entering: Int,
        written: Int64 = 0
    ) throws(StoreError) -> Occupancy? {
        guard let usage, usage.isCounted else { return nil }
        return Occupancy(
            bytes: usage.plausibleBytes + control.claimedBytes,
            overhead: overhead,
            entries: usage.plausibleEntries + entering,
            space: limits.minimumFree == nil ? nil : try space().taking(control.claimedBytes - written)
        )
    }

    /// What the file system has; one system call.
    func space() throws(StoreError) -> FileSystemSpace {
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
    /// - Parameters:
    ///   - length: of the value.
    ///   - isWritten: whether its bytes are on disk already.
    ///   - now: the caller's time.
    ///   - room: what to do where there is none.
    /// - Throws: ``StoreError/Code/valueTooLarge`` for one that can never fit, ``StoreError/Code/noRoom`` where
    ///   nothing could be evicted in time.
    func claimRoom(
        forLength length: Int,
        isWritten: Bool = false,
        now: Timestamp,
        _ room: inout RoomTerms
    ) throws(StoreError) -> RoomClaim? {
        if followed.isDue() { followConfiguration() }
        let configuration = configuration
        try refuse(length, configuration)
        guard configuration.limits.areBounding else { return nil }
        if !isWritten { try refuseHopeless(length, configuration.limits) }
        var wait = RoomWait(room, in: self)
        defer { room.spent += wait.elapsed }
        try countIfUnknown(now: now, &wait)
        let need = RoomNeed(
            bytes: directory.allocation(of: length) + entries.usualAllocation,
            written: isWritten ? directory.allocation(of: length) : 0
        )
        switch try claim(need, configuration.limits) {
        case .granted(let claim): return claim
        case .refused: return try waitForRoom(need, now, &wait)
        }
    }

    /// Puts a claim that counts still in the place of one that was forgotten, if there is room at this moment; false:
    /// there is none.
    ///
    /// Waits for nobody, so that it can be called while a stripe is held.
    func renew(_ claim: inout RoomClaim?, forLength length: Int) throws(StoreError) -> Bool {
        guard let old = claim, !control.isStanding(old) else { return true }
        let need = RoomNeed(bytes: old.bytes, written: directory.allocation(of: length))
        guard case .granted(let fresh) = try self.claim(need, configuration.limits) else { return false }
        claim = fresh
        return true
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

    /// Refuses what would not fit if everything was evicted, or it would be, in vain.
    ///
    /// One system call for a long value, none for others.
    private func refuseHopeless(_ length: Int, _ limits: SweepLimits) throws(StoreError) {
        guard length >= Self.longLength, let usage, usage.isCounted else { return }
        let space = try space()
        let floor = limits.minimumFree?.bytes(of: space.totalBytes) ?? 0
        if Double(length) > Double(usage.plausibleBytes) + Double(space.availableBytes) - Double(floor) {
            throw tooLarge(length, "that is more than all values take and the disk has free")
        }
    }

    /// 1 MiB: to write so much takes a thousand times as long as to ask what is free.
    private static var longLength: Int { 1 << 20 }

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

    private func claim(_ need: RoomNeed, _ limits: SweepLimits) throws(StoreError) -> ClaimOutcome {
        // The claim first, the look afterwards: of two at once at least one sees the other's.
        let claim = control.claim(need.bytes)
        do throws(StoreError) {
            guard let occupancy = try occupancy(limits, entering: 1, written: need.written) else {
                return .granted(claim)
            }
            if limits.overflow(of: occupancy) != nil, let pressed = pressed.withLock({ $0 }) { pressed() }
            if limits.excess(of: occupancy) == nil { return .granted(claim) }
            giveBack(claim)
            guard let excess = limits.excess(of: occupancy, over: SweepLimits.roomMark) else {
                return .granted(nil)
            }
            return .refused(excess)
        } catch {
            giveBack(claim)
            throw error
        }
    }

    private func waitForRoom(
        _ need: RoomNeed,
        _ now: Timestamp,
        _ wait: inout RoomWait
    ) throws(StoreError) -> RoomClaim? {
        counters.add(.roomWait)
        wait.begin()
        var relief: Relief?
        while true {
            let excess: LimitExcess
            switch try claim(need, configuration.limits) {
            case .granted(let claim): return claim
            case .refused(let found): excess = found
            }
            if let relief {
                let goesOn =
                    switch relief {
                    case .done: !wait.isOver
                    case .busy: try wait.pause()
                    case .impossible, .unfinished: false
                    }
                guard goesOn else {
                    counters.add(.roomFailure)
                    throw noRoom(need.bytes, excess, relief, wait)
                }
            }
            relief = try relieve(excess, now: now + wait.elapsed, pace: wait.pace)
            if followed.isDue() { followConfiguration() }
        }
    }

    private func noRoom(
        _ bytes: Int64,
        _ excess: LimitExcess,
        _ relief: Relief,
        _ wait: RoomWait
    ) -> StoreError {
        let limit = "it is at its limit of \(excess.reason.limitName)"
        let reason =
            switch relief {
            case .impossible: "nothing is left to evict"
            case .unfinished: "to find what to evict takes longer than \(wait.effort)"
            case .busy, .done: wait.hindrance ?? "no room was made in \(wait.patience)"
            }
        return StoreError(
            .noRoom,
            "store \(bytes) bytes in",
            path: directory.path,
            detail: "\(limit), and \(reason)"
        )
    }

    // MARK: Full disks

    /// Runs `attempt`, and again after each collection that has set something free, where the disk or somebody's quota
    /// is full.
    ///
    /// In bounded time: no longer than ``RoomTerms/patience`` says. The caller holds no lock.
    ///
    /// - Parameter length: of the value.
    func makingSpace<Value>(
        forLength length: Int,
        now: Timestamp,
        _ room: RoomTerms = RoomTerms(),
        _ attempt: (inout RoomTerms) throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        var room = room
        var wait = RoomWait(room, in: self)
        while true {
            do throws(StoreError) {
                return try attempt(&room)
            } catch {
                guard error.errno?.tellsOfFullDisk ?? false, makeSpace(Int64(length), now: now, &wait) else {
                    throw error
                }
                room.spent = max(room.spent, wait.elapsed)
            }
        }
    }

    /// Collects what may go, where the disk or a quota is full: what is of no use to anybody, and, where limits are set,
    /// so many bytes of the least recently used values; false where that has set nothing free in time.
    func makeSpace(_ bytes: Int64, now: Timestamp, _ wait: inout RoomWait) -> Bool {
        wait.begin()
        if let known = currentImpasse(wait.pace), known != .busy { return false }
        if wait.isOver, !wait.mayTryInVain() { return false }
        do throws(StoreError) {
            switch try relieveFullDisk(bytes, now: now + wait.elapsed, wait.pace) {
            case .done: return true
            case .impossible, .unfinished:
                // Another process may have set something free just before.
                return wait.mayTryInVain()
            case .busy:
                // What another process sets free is as good; where none is at it, what writers have claimed is
                // waited for.
                guard try wait.pause() else { return false }
                return try wait.pauseUntilSwept()
            }
        } catch {
            // That the disk is full is what the caller tells then, and is why.
            counters.add(.roomFailure)
            return false
        }
    }

    /// The same for a file that is not the store's.
    package func makeSpace(_ bytes: Int64, now: Timestamp) -> Bool {
        var wait = RoomWait(RoomTerms(), in: self)
        return makeSpace(bytes, now: now, &wait)
    }

    private func relieveFullDisk(_ bytes: Int64, now: Timestamp, _ pace: SweepPace) throws(StoreError)
        -> Relief
    {
        let limits = configuration.limits
        var excess = LimitExcess(bytes: 0, entries: 0, reason: .freeSpace)
        guard limits.areBounding else {
            if let relief = currentImpasse(pace) { return relief }
            return try sweepForRoom(excess, now: now, pace: pace)
        }
        // With room for what an entry and new directories take.
        excess.bytes = bytes + 4 * directory.blockSize
        if let occupancy = try occupancy(limits, entering: 1),
            let missing = limits.excess(of: occupancy, over: SweepLimits.roomMark),
            missing.reason == .freeSpace
        {
            excess.bytes = max(excess.bytes, missing.bytes)
        }
        return try relieve(excess, now: now, pace: pace)
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
        if let relief = currentImpasse(pace) { return relief }
        if !orphansMayDo(for: excess) {
            let goal = EvictionGoal(bytes: excess.bytes, entries: excess.entries, reason: excess.reason)
            let report = try Sweep.evictListed(goal, on: self, now: now, pace: pace)
            guard let report else { return .busy }
            if report.evicted.count > 0 || !report.isExhausted { return .done }
        }
        return try sweepForRoom(excess, now: now, pace: pace)
    }

    /// What the last sweep that has found nothing to evict would find again at that pace; nil: look.
    private func currentImpasse(_ pace: SweepPace) -> Relief? {
        guard let impasse = impasse.withLock({ $0 }), ContinuousClock.now < impasse.end, impasse.view == view
        else {
            return nil
        }
        // Who has more time may find something.
        if impasse.relief == .unfinished {
            guard let deadline = pace.deadline, deadline - .now <= impasse.effort * 2 else { return nil }
        }
        return impasse.relief
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
        let usage = usage.flatMap { $0.isCounted ? $0 : nil }
        if usage != nil || excess.reason == .freeSpace {
            let present = Occupancy(
                bytes: usage?.plausibleBytes ?? 0,
                overhead: overhead,
                entries: usage?.plausibleEntries ?? 0,
                space: excess.reason == .freeSpace || limits.minimumFree != nil ? try space() : nil
            )
            request.limits = request.limits.lowered(by: excess, from: present)
        }
        request.stripePatience = Self.stripePatience
        request.pace = pace
        let (begin, before) = (ContinuousClock.now, view)
        let report = try Sweep.runIfDue(request, on: self, now: now) { _ in true }
        guard let report else { return .busy }
        // Where it counted otherwise than was known, or others stored or gave up something meanwhile, it is another
        // question now.
        guard report.removed.isEmpty, !limits.areBounding || before == view else { return .done }
        // In use at this moment, and not for ever: what is still spared when nothing else has changed will be again.
        let isInUse =
            report.isComplete && report.spared > 0 && report.unreadable.isEmpty
            && impasse.withLock { $0?.view } != before
        // What stays although it should go is nobody's to evict; or it is not there yet; or time ran out before it was
        // found.
        let isPassing = before.claimed > 0 || isInUse
        let rest = (ContinuousClock.now - begin) * Self.futileRest
        let impasse = Impasse(
            end: .now + (isPassing ? rest : max(.seconds(1), rest)),
            view: limits.areBounding ? before : view,
            effort: .now - begin,
            relief: isPassing ? .busy : report.isComplete ? .impossible : .unfinished
        )
        self.impasse.withLock { $0 = impasse }
        return impasse.relief
    }

    /// What is known of the directory without a look at it.
    struct View: Equatable {
        var usage: StoreUsage?
        var claimed: Int64 = 0
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
        guard configuration.limits.areBounding else { return View(replaced: control.replacedEntries) }
        return View(usage: usage, claimed: control.claimedBytes)
    }

    /// How long a put waits for one stripe while it makes room: others hold something that can go as well.
    static var stripePatience: Duration { .milliseconds(100) }

    /// How many times longer than a sweep that found nothing to evict it takes until the next: so that such sweeps
    /// take a tenth of a processor at most.
    static var futileRest: Int { 10 }
}

/// What one put needs.
private struct RoomNeed {
    /// On disk, with its entry.
    let bytes: Int64
    /// So many of them are on disk already.
    let written: Int64
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
