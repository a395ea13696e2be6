// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a put does where there is no room.
package struct RoomTerms {
    /// How long it waits for room and works to make some; nil: ``StoreOptions/roomPatience``.
    package var patience: Duration?
    /// Called once where that takes longer than a moment: whoever waits for the caller need not wait for that.
    package var whileWaiting: () -> Void
    /// The time that the call has waited for room and worked for some.
    var spent: Duration = .zero

    /// How long to wait for one stripe then.
    ///
    /// With what was spent less than a second, also where that was for a process that is stopped; holders keep them for
    /// microseconds.
    var stripePatience: Duration {
        spent == .zero
            ? Stripes.writerPatience
            : max(.milliseconds(150), min(Stripes.writerPatience, .milliseconds(850) - spent))
    }

    package init(patience: Duration? = nil, whileWaiting: @escaping () -> Void = {}) {
        self.patience = patience
        self.whileWaiting = whileWaiting
    }
}

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

/// The room that puts claim: how a directory is kept within its limits while it is written to.
///
/// Every put of new bytes claims what it will take in the usage that all processes share, before it writes: so
/// however many write at once, together they stay below the limit. A put that finds no room makes some, or waits while
/// somebody else does. A claim of a killed or stopped process is forgotten within a second of further claims
/// (``Control/claim(_:)``); one that lives claims again where its own was forgotten, before it publishes.
package final class Room: Sendable {
    let parts: StoreParts
    private let patience: Duration
    /// Told when a put passes the high mark.
    private let pressed = Locked<PressureListener?>(nil)
    /// Where a sweep has found nothing to evict.
    let impasse = Locked<Impasse?>(nil)
    /// Until then what is in the directory can't be counted.
    let uncountableUntil = Locked<ContinuousClock.Instant?>(nil)

    /// - Parameter patience: how long a put waits, unless its terms say otherwise.
    init(of parts: StoreParts, patience: Duration) {
        self.parts = parts
        self.patience = patience
    }

    var configuration: DirectoryConfiguration { parts.configuration.present }

    /// The wait of a put with these terms, which has not begun.
    func wait(_ terms: RoomTerms) -> JanitorWait {
        JanitorWait(
            for: parts.janitor,
            patience: max(.zero, terms.patience ?? patience) - terms.spent,
            whileWaiting: terms.whileWaiting
        )
    }

    // MARK: Occupancy

    /// What the directory takes, as all processes have added it up; nil where that is not known: without a control
    /// file, or before the first sweep of one that was made anew.
    ///
    /// `entering` so many entries, whose bytes are claimed already: what is to stay free is claimed by taking it off what
    /// is available, but for so many bytes that are `written` already.
    /// One system call where a minimum of free space is set, else none.
    package func occupancy(
        _ limits: CacheLimits,
        entering: Int = 0,
        written: Int64 = 0
    ) throws(CacheError) -> Occupancy? {
        guard let usage = parts.control.usage, usage.isCounted else { return nil }
        let claimed = parts.control.claimedBytes
        return Occupancy(
            bytes: usage.plausibleBytes + claimed,
            overhead: parts.overhead,
            entries: usage.plausibleEntries + entering,
            space: limits.minimumFree == nil ? nil : try parts.directory.space(),
            claimed: claimed - written
        )
    }

    /// What has to go to be below the low mark, where the high one is passed.
    package func overflow() throws(CacheError) -> Excess? {
        let limits = configuration.limits
        guard limits.areBounding, let occupancy = try occupancy(limits) else { return nil }
        return limits.overflow(of: occupancy)
    }

    /// Whether the high mark is passed, so that nobody who could evict should take a rest; false also where that can't
    /// be told: whoever goes on meets the reason.
    package var isPressed: Bool {
        do throws(CacheError) {
            return try overflow() != nil
        } catch {
            return false
        }
    }

    /// Has `body` called when a put passes the high mark: often, and on the thread that puts, so it should only wake
    /// somebody.
    package func onPressure(_ body: @escaping @Sendable () -> Void) {
        let listener = PressureListener(body: body)
        pressed.withLock { $0 = listener }
    }

    // MARK: Claims

    /// Claims room for a value of `length` bytes and its entry, waiting for it where there is none.
    ///
    /// What was claimed is to be given back once the value is stored, and counted as it was found, or has failed;
    /// nil where nothing had to be claimed.
    ///
    /// - Parameters:
    ///   - length: of the value.
    ///   - record: the length of its record.
    ///   - entries: how many there will be more.
    ///   - isWritten: whether its bytes are on disk already.
    ///   - now: the caller's time.
    ///   - terms: what to do where there is none.
    /// - Throws: ``CacheError/Code/valueTooLarge`` for one that can never fit, ``CacheError/Code/noRoom`` where
    ///   nothing could be evicted in time.
    func claim(
        forLength length: Int,
        record: Int,
        entries: Int,
        isWritten: Bool = false,
        now: Timestamp,
        _ terms: inout RoomTerms
    ) throws(CacheError) -> RoomClaim? {
        let limits = configuration.limits
        let value = parts.directory.expectedAllocation(of: length)
        let bytes = value + parts.entries.expectedAllocation(ofRecord: record)
        try refuse(length, taking: bytes, limits)
        guard limits.areBounding else { return nil }
        if !isWritten { try refuseHopeless(length, limits) }
        var wait = wait(terms)
        defer { terms.spent += wait.elapsed }
        try countIfUnknown(now: now, &wait)
        let need = Need(bytes: bytes, entries: entries, written: isWritten ? value : 0)
        var claim: RoomClaim?
        let excess = try attempt(need, limits, &claim)
        return excess == nil ? claim : try waitForRoom(need, now, &wait)
    }

    /// Puts a claim that counts still in the place of one that was forgotten, if there is room at this moment; false:
    /// there is none.
    ///
    /// Waits for nobody, so that it can be called while a stripe is held.
    ///
    /// - Parameter written: bytes that are on disk already.
    func renew(_ claim: inout RoomClaim?, written: Int64) throws(CacheError) -> Bool {
        guard let old = claim, !parts.control.isStanding(old) else { return true }
        let need = Need(bytes: old.bytes, entries: 1, written: written)
        return try attempt(need, configuration.limits, &claim) == nil
    }

    /// Gives back what was claimed.
    func giveBack(_ claim: RoomClaim?) {
        if let claim { parts.control.giveBack(claim) }
    }

    /// What one put needs.
    private struct Need {
        /// On disk, with its entry.
        let bytes: Int64
        let entries: Int
        /// So many of the bytes are on disk already.
        let written: Int64
    }

    /// Claims what is needed; else tells what has to go first, and leaves `claim` as it is.
    private func attempt(
        _ need: Need,
        _ limits: CacheLimits,
        _ claim: inout RoomClaim?
    ) throws(CacheError) -> Excess? {
        // The claim first, the look afterwards: of two at once at least one sees the other's.
        let fresh = parts.control.claim(need.bytes)
        var granted = fresh
        do throws(CacheError) {
            if let occupancy = try occupancy(limits, entering: need.entries, written: need.written) {
                if limits.overflow(of: occupancy) != nil, let pressed = pressed.withLock({ $0 }) {
                    pressed.body()
                }
                if limits.excess(of: occupancy).reason != nil {
                    giveBack(granted.take())
                    let excess = limits.excess(of: occupancy, over: CacheLimits.roomMark)
                    if excess.reason != nil { return excess }
                }
            }
        } catch {
            giveBack(fresh)
            throw error
        }
        claim = granted
        return nil
    }

    private func waitForRoom(
        _ need: Need,
        _ now: Timestamp,
        _ wait: inout JanitorWait
    ) throws(CacheError) -> RoomClaim? {
        parts.counters.add(.roomWait)
        wait.begin()
        var relief: Relief?
        while true {
            var claim: RoomClaim?
            guard let excess = try attempt(need, configuration.limits, &claim) else { return claim }
            if let relief {
                let goesOn =
                    switch relief {
                    case .done: !wait.isOver
                    case .busy: try wait.pause()
                    case .impossible, .unfinished: false
                    }
                guard goesOn else {
                    parts.counters.add(.roomFailure)
                    throw noRoom(need.bytes, excess, relief, wait)
                }
            }
            relief = try relieve(excess, now: now + wait.elapsed, pace: SweepPace(until: wait.deadline))
            if parts.configuration.isDue() { parts.configuration.look() }
        }
    }

    private func noRoom(
        _ bytes: Int64,
        _ excess: Excess,
        _ relief: Relief,
        _ wait: JanitorWait
    ) -> CacheError {
        let limit =
            switch excess.reason {
            case .entries: "keys"
            case .freeSpace: "free space"
            default: "size"
            }
        let reason =
            switch relief {
            case .impossible: "nothing is left to evict"
            case .unfinished: "to find what to evict takes longer than \(wait.effort)"
            case .busy, .done: wait.hindrance ?? "no room was made in \(wait.patience)"
            }
        let detail = "it is at its limit of \(limit), and \(reason)"
        return CacheError(.noRoom, to: "store \(bytes) bytes in", path: parts.directory.path, detail: detail)
    }

    // MARK: What can never fit

    /// The length of the longest value that the limits allow.
    var longestValue: Int64? {
        let limits = configuration.limits
        let room = limits.maximumSize.map { max(0, $0.bytes - parts.overhead) }
        guard let most = limits.maximumValueSize?.bytes else { return room }
        return min(most, room ?? most)
    }

    /// - Parameter bytes: what it takes on disk, with its entry.
    private func refuse(_ length: Int, taking bytes: Int64, _ limits: CacheLimits) throws(CacheError) {
        if let most = limits.maximumValueSize?.bytes, Int64(length) > most {
            throw tooLarge(length, "the longest value is \(most) bytes")
        }
        let room = limits.maximumSize.map { $0.bytes - parts.overhead }
        if let room, bytes > room {
            throw tooLarge(length, "all values together may take \(max(0, room)) bytes")
        }
    }

    /// Refuses what would not fit if everything was evicted, or it would be, in vain.
    ///
    /// One system call for a long value, none for others.
    func refuseHopeless(_ length: Int, _ limits: CacheLimits) throws(CacheError) {
        guard length >= Self.longLength, let usage = parts.control.usage, usage.isCounted else { return }
        let space = try parts.directory.space()
        let floor = limits.minimumFree?.bytes(of: space.totalBytes) ?? 0
        if Double(length) > Double(usage.plausibleBytes) + Double(space.availableBytes) - Double(floor) {
            throw tooLarge(length, "that is more than all values take and the disk has free")
        }
    }

    /// 1 MiB: to write so much takes a thousand times as long as to ask what is free.
    private static let longLength = 1 << 20

    private func tooLarge(_ length: Int, _ limit: String) -> CacheError {
        CacheError(.valueTooLarge, to: "store \(length) bytes in", path: parts.directory.path, detail: limit)
    }
}

/// In a structure: a function that is a generic value itself is wrapped anew each time it is looked at.
private struct PressureListener {
    let body: @Sendable () -> Void
}
