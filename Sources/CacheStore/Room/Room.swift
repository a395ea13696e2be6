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
    /// No more than one object was removed that no entry named. The caller's last attempt may have left that itself:
    /// where the disk had room for the object and not for its entry.
    case little
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
    /// With what is claimed, and `entering` so many entries more. What is to stay free is claimed by taking it off what is
    /// available, but for so many bytes that are `written` already.
    /// One system call where a minimum of free space is set, else none.
    package func occupancy(
        _ limits: CacheLimits,
        entering: Int = 0,
        written: Int64 = 0
    ) throws(CacheError) -> Occupancy? {
        guard let usage = parts.control.usage, usage.isCounted else { return nil }
        let claimed = parts.control.claimed
        return Occupancy(
            bytes: usage.plausibleBytes + claimed.bytes,
            overhead: parts.overhead,
            entries: usage.plausibleEntries + claimed.entries + entering,
            space: limits.minimumFree == nil ? nil : try parts.directory.space(),
            claimed: claimed.bytes - written
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

    /// What a value of `length` bytes and its entry need; nil where nothing has to be claimed.
    ///
    /// - Parameters:
    ///   - length: of the value.
    ///   - record: the length of its record.
    ///   - entries: how many there will be more.
    ///   - isWritten: whether its bytes are on disk already.
    /// - Throws: ``CacheError/Code/valueTooLarge`` for one that can never fit, and why the limits can't be read.
    func need(forLength length: Int, record: Int, entries: Int, isWritten: Bool) throws(CacheError) -> Need? {
        let limits = try parts.configuration.limitsForPut()
        let value = parts.control.expectedAllocation(of: length)
        let bytes = value + parts.entries.expectedAllocation(ofRecord: record)
        try refuse(length, taking: bytes, limits)
        guard limits.areBounding else { return nil }
        if !isWritten { try refuseHopeless(length, limits) }
        return Need(bytes: bytes, entries: entries, written: isWritten ? value : 0)
    }

    /// The same for a value that takes the place of another: the difference.
    ///
    /// The old value goes when the next sweep finds that no entry names it any more: until then both are there.
    func need(_ need: Need, of content: Content, replacing old: StoredEntry) -> Need {
        var need = need
        need.entries = 0
        need.bytes = max(0, need.bytes - parts.entries.expectedAllocation(ofRecord: old.bytes.count))
        if let value = old.record?.content, value.digest != content.digest {
            need.replaced = parts.control.expectedAllocation(of: value.length)
        }
        return need
    }

    /// Whether the old value should go first, as there is not room for both: it takes what is missing, and so much that
    /// the sweep which that takes is no great thing beside it.
    func shouldGoFirst(_ need: Need, _ excess: Excess) -> Bool {
        let entries = parts.control.usage?.plausibleEntries ?? .max
        return excess.entries == 0 && need.replaced >= excess.bytes
            && need.replaced / Self.worthOfEntry >= Int64(clamping: entries)
    }

    /// Bytes: a sweep looks at an entry in about the time in which so many are written.
    private static let worthOfEntry: Int64 = 4096

    /// Counts the directory if its control file is new.
    func countIfUnknown(now: Timestamp, _ terms: inout RoomTerms) throws(CacheError) {
        var wait = wait(terms)
        defer { terms.spent += wait.elapsed }
        try countIfUnknown(now: now, &wait)
    }

    /// Puts a claim that counts still in the place of one that was forgotten, if there is room at this moment; false:
    /// there is none.
    ///
    /// Waits for nobody, so that it can be called while a stripe is held.
    ///
    /// - Parameter written: bytes that are on disk already.
    func renew(_ claim: inout RoomClaim?, written: Int64) throws(CacheError) -> Bool {
        guard let old = claim, !parts.control.isStanding(old) else { return true }
        let need = Need(bytes: old.bytes, entries: old.entries, written: written)
        return try attempt(need, &claim) == nil
    }

    /// Gives back what was claimed.
    func giveBack(_ claim: RoomClaim?) {
        if let claim { parts.control.giveBack(claim) }
    }

    /// What one put needs.
    struct Need {
        /// On disk, with its entry.
        var bytes: Int64
        var entries: Int
        /// So many of the bytes are on disk already.
        let written: Int64
        /// Bytes of the value that it takes the place of.
        var replaced: Int64 = 0
        /// Bytes of values that no entry names any more for its sake.
        var orphaned: Int64 = 0
    }

    /// The part of the size limit by which values that were replaced may pass it until the next sweep.
    ///
    /// Else each put that replaces a value would have to evict another. One in 128, so that all writers together stay well
    /// below 1.05 times the limit.
    private static let partForReplaced: Int64 = 128

    /// By how much the size limit may be passed for now: where a value takes the place of one that is no smaller.
    private func excessForNow(_ need: Need, _ limits: CacheLimits) -> Int64 {
        need.bytes > need.replaced ? 0 : (limits.maximumSize?.bytes ?? 0) / Self.partForReplaced
    }

    /// The excess that must be evicted first; `occupancy` includes the need.
    private func lack(_ need: Need, _ occupancy: Occupancy, _ limits: CacheLimits) -> Excess? {
        var excess = limits.excess(of: occupancy)
        guard let reason = excess.reason else { return nil }
        let forNow = excessForNow(need, limits)
        if reason == .size, excess.freeSpace == 0, excess.size <= forNow { return nil }
        guard need.replaced > 0 else { return limits.excess(of: occupancy, over: CacheLimits.roomMark) }
        // Its own bytes take the place of those of the old value.
        excess.size -= min(need.bytes, forNow, max(0, excess.size - 1))
        return excess
    }

    /// Claims what is needed; else tells what has to go first, and leaves `claim` as it is.
    func attempt(_ need: Need, _ claim: inout RoomClaim?) throws(CacheError) -> Excess? {
        let limits = configuration.limits
        // The claim first, the look afterwards: of two at once at least one sees the other's.
        let fresh = parts.control.claim(need.bytes, entries: need.entries)
        // What takes nothing more needs no room.
        if need.bytes == 0, need.entries == 0 {
            claim = fresh
            return nil
        }
        do throws(CacheError) {
            if let occupancy = try occupancy(limits, written: need.written) {
                if limits.overflow(of: occupancy) != nil, let pressed = pressed.withLock({ $0 }) {
                    pressed.body()
                }
                if let lack = lack(need, occupancy, limits) {
                    giveBack(fresh)
                    return lack
                }
            }
        } catch {
            giveBack(fresh)
            throw error
        }
        claim = fresh
        return nil
    }

    /// Claims what is needed once there is room, making some or waiting while somebody else does.
    ///
    /// - Throws: ``CacheError/Code/noRoom`` where nothing could be evicted in time.
    func waitForRoom(
        _ need: Need,
        now: Timestamp,
        _ terms: inout RoomTerms
    ) throws(CacheError) -> RoomClaim? {
        parts.counters.add(.roomWait)
        var wait = wait(terms)
        defer { terms.spent += wait.elapsed }
        wait.begin()
        var relief: Relief?
        while true {
            var claim: RoomClaim?
            guard let excess = try attempt(need, &claim) else { return claim }
            if let relief {
                let goesOn =
                    switch relief {
                    case .done, .little: !wait.isOver
                    case .busy: try wait.pause()
                    case .impossible, .unfinished: false
                    }
                guard goesOn else {
                    parts.counters.add(.roomFailure)
                    throw noRoom(need.bytes, excess, relief, wait)
                }
            }
            let orphaned = relief == nil ? need.orphaned : 0
            let pace = SweepPace(until: wait.deadline)
            relief = try relieve(excess, orphaned: orphaned, now: now + wait.elapsed, pace: pace)
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
            case .busy, .done, .little: wait.hindrance ?? "no room was made in \(wait.patience)"
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

    /// - Parameter bytes: on disk, with its entry.
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
