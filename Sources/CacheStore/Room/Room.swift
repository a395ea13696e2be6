// SPDX-License-Identifier: Apache-2.0

import Platform

/// The terms of a put's wait for room.
package struct RoomTerms {
    /// The longest time that a put waits for room or makes some; nil for ``StoreOptions/roomPatience``.
    package var patience: Duration?
    /// Called once if that takes longer than a moment, so that processes which wait for the caller can continue.
    package var whileWaiting: () -> Void
    /// The time that the call has waited for room or made some.
    var spent: Duration = .zero

    /// The longest time to wait for one stripe after that.
    ///
    /// Together with `spent` it is less than a second, even if the call has waited for a stopped process. A holder keeps a
    /// stripe for microseconds.
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

/// The outcome of an attempt to make room.
package enum Relief: Sendable, Equatable {
    /// This process or another one has removed files.
    case done
    /// At most one object was removed that no entry named.
    ///
    /// The caller's last attempt may have left it, if the disk had room for the object and not for its entry.
    case little
    /// Another process is making room.
    case busy
    /// Nothing is left to remove.
    case impossible
    /// The time was too short to find something to remove.
    case unfinished
}

/// The room that puts claim, so that a directory stays within its limits.
///
/// A put of new bytes claims their room in words that all processes share, before it writes them. So any number of writers
/// together stay below the limit. A put that finds no room makes some, or waits while another process does. The claim of a
/// killed or stopped process is forgotten within a second of further claims (``Control/claim(_:)``). A slow writer whose
/// claim was forgotten claims again before it publishes.
package final class Room: Sendable {
    let parts: StoreParts
    private let patience: Duration
    /// Called when a put passes the high mark.
    private let pressed = Locked<PressureListener?>(nil)
    /// The last sweep that found nothing to evict.
    let impasse = Locked<Impasse?>(nil)
    /// The last attempt to count the directory that failed.
    let failedCount = Locked<FailedCount?>(nil)

    /// - Parameter patience: how long a put waits, unless its terms specify otherwise.
    init(of parts: StoreParts, patience: Duration) {
        self.parts = parts
        self.patience = patience
    }

    var configuration: DirectoryConfiguration { parts.configuration.present }

    /// Returns a wait with these terms that has not started.
    func wait(_ terms: RoomTerms) -> JanitorWait {
        JanitorWait(
            for: parts.janitor,
            patience: max(.zero, terms.patience ?? patience) - terms.spent,
            whileWaiting: terms.whileWaiting
        )
    }

    // MARK: Occupancy

    /// Returns the usage of the directory with all claims; nil if it is unknown.
    ///
    /// It is unknown if there is no control file, or if no sweep has counted since the control file was created.
    ///
    /// One system call if a minimum of free space is set, otherwise none.
    ///
    /// - Parameters:
    ///   - entering: entries to add.
    ///   - written: the claimed bytes that are on disk already, so that the free space does not include them.
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

    /// Returns the excess over the low mark, if the usage is over the high mark; otherwise nil.
    package func overflow() throws(CacheError) -> Excess? {
        let limits = configuration.limits
        guard limits.areBounding, let occupancy = try occupancy(limits) else { return nil }
        return limits.overflow(of: occupancy)
    }

    /// Whether the usage is over the high mark, so that a janitor should not rest.
    ///
    /// It is also false if an error prevents the check, as the next put reports that error.
    package var isPressed: Bool {
        do throws(CacheError) {
            return try overflow() != nil
        } catch {
            return false
        }
    }

    /// Sets the function that is called when a put passes the high mark.
    ///
    /// It is called often and on the thread of the put, so it should do no more than wake another thread.
    package func onPressure(_ body: @escaping @Sendable () -> Void) {
        let listener = PressureListener(body: body)
        pressed.withLock { $0 = listener }
    }

    // MARK: Claims

    /// Returns the room that a value of `length` bytes and its entry need; nil if no limit makes a claim necessary.
    ///
    /// - Parameters:
    ///   - length: the length of the value.
    ///   - record: the length of its record.
    ///   - entries: the number of entries to add.
    ///   - isWritten: whether the bytes of the value are on disk already.
    /// - Throws: ``CacheError/Code/valueTooLarge`` for a value that can never fit; the error of reading the limits.
    func need(forLength length: Int, record: Int, entries: Int, isWritten: Bool) throws(CacheError) -> Need? {
        let limits = try parts.configuration.limitsForPut()
        let value = parts.control.expectedAllocation(of: length)
        let bytes = value + parts.entries.expectedAllocation(ofRecord: record)
        try refuse(length, taking: bytes, limits)
        guard limits.areBounding else { return nil }
        if !isWritten { try refuseHopeless(length, limits) }
        return Need(bytes: bytes, entries: entries, written: isWritten ? value : 0)
    }

    /// Returns the room for a value that replaces another one: the difference.
    ///
    /// Both values are on disk until the next sweep removes the old one, which no entry names any more.
    func need(_ need: Need, of content: Content, replacing old: StoredEntry) -> Need {
        var need = need
        need.entries = 0
        need.bytes = max(0, need.bytes - parts.entries.expectedAllocation(ofRecord: old.bytes.count))
        if let value = old.record?.content, value.digest != content.digest {
            need.replaced = parts.control.expectedAllocation(of: value.length)
        }
        return need
    }

    /// Returns whether the old value should be removed first, as there is no room for both.
    ///
    /// It should if it is at least as large as the excess, and large enough to justify the cost of the sweep.
    func shouldGoFirst(_ need: Need, _ excess: Excess) -> Bool {
        let entries = parts.control.usage?.plausibleEntries ?? .max
        return excess.entries == 0 && need.replaced >= excess.bytes
            && need.replaced / Self.worthOfEntry >= Int64(clamping: entries)
    }

    /// The number of bytes that can be written in about the time that a sweep takes for one entry.
    private static let worthOfEntry: Int64 = 4096

    /// Counts the directory if its control file is new.
    func countIfUnknown(_ need: Need, now: Timestamp, _ terms: inout RoomTerms) throws(CacheError) {
        var wait = wait(terms)
        defer { terms.spent += wait.elapsed }
        try countIfUnknown(need, now: now, &wait)
    }

    /// Claims again if the claim was forgotten; false if there is no room at this moment.
    ///
    /// It does not wait, so the caller may hold a stripe.
    ///
    /// - Parameter written: the bytes that are on disk already.
    func renew(_ claim: inout RoomClaim?, written: Int64) throws(CacheError) -> Bool {
        guard let old = claim, !parts.control.isStanding(old) else { return true }
        let need = Need(bytes: old.bytes, entries: old.entries, written: written)
        return try attempt(need, &claim) == nil
    }

    /// Ends a claim.
    func giveBack(_ claim: RoomClaim?) {
        if let claim { parts.control.giveBack(claim) }
    }

    /// The room that one put needs.
    struct Need {
        /// Bytes on disk of the value and its entry.
        var bytes: Int64
        var entries: Int
        /// The part of `bytes` that is on disk already.
        let written: Int64
        /// Bytes on disk of the value that is replaced.
        var replaced: Int64 = 0
    }

    /// Replaced values may exceed the size limit by one part in this number until the next sweep.
    ///
    /// Otherwise each put that replaces a value would have to evict another one. With 128 all writers together stay well
    /// below 1.05 times the limit.
    private static let partForReplaced: Int64 = 128

    /// Returns the bytes by which a put may exceed the size limit until the next sweep.
    ///
    /// It is 0 unless the value that it replaces is at least as large.
    private func excessForNow(_ need: Need, _ limits: CacheLimits) -> Int64 {
        need.bytes > need.replaced ? 0 : (limits.maximumSize?.bytes ?? 0) / Self.partForReplaced
    }

    /// Returns the excess that must be evicted first; `occupancy` includes the need.
    private func lack(_ need: Need, _ occupancy: Occupancy, _ limits: CacheLimits) -> Excess? {
        var excess = limits.excess(of: occupancy)
        guard let reason = excess.reason else { return nil }
        let forNow = excessForNow(need, limits)
        if reason == .size, excess.freeSpace == 0, excess.size <= forNow { return nil }
        guard need.replaced > 0 else { return limits.excess(of: occupancy, over: CacheLimits.roomMark) }
        // The new value takes the room of the old one.
        excess.size -= min(need.bytes, forNow, max(0, excess.size - 1))
        return excess
    }

    /// Claims the room; if there is none, returns the excess that has to be removed first and leaves `claim` unchanged.
    func attempt(_ need: Need, _ claim: inout RoomClaim?) throws(CacheError) -> Excess? {
        let limits = configuration.limits
        // Claim first and check afterwards: of two concurrent writers at least one sees the claim of the other.
        let fresh = parts.control.claim(need.bytes, entries: need.entries)
        // A put that takes nothing needs no room.
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

    /// Makes room, or waits while another process does, and claims it.
    ///
    /// - Throws: ``CacheError/Code/noRoom`` if nothing could be evicted in time.
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
            let pace = SweepPace(until: wait.deadline)
            relief = try relieve(excess, now: now + wait.elapsed, pace: pace)
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

    // MARK: Values that can never fit

    /// The length of the longest value that the limits allow.
    var longestValue: Int64? {
        let limits = configuration.limits
        let room = limits.maximumSize.map { max(0, $0.bytes - parts.overhead) }
        guard let most = limits.maximumValueSize?.bytes else { return room }
        return min(most, room ?? most)
    }

    /// Refuses a value that is longer than any value may be, even if its bytes exist already.
    func refuseTooLong(_ length: Int) throws(CacheError) {
        try refuse(length, taking: 0, parts.configuration.limitsForPut())
    }

    /// - Parameter bytes: the size on disk of the value and its entry.
    private func refuse(_ length: Int, taking bytes: Int64, _ limits: CacheLimits) throws(CacheError) {
        if let most = limits.maximumValueSize?.bytes, Int64(length) > most {
            throw tooLarge(length, "the longest value is \(most) bytes")
        }
        let room = limits.maximumSize.map { $0.bytes - parts.overhead }
        if let room, bytes > room {
            throw tooLarge(length, "all values together may take \(max(0, room)) bytes")
        }
    }

    /// Refuses a value that would not fit even if everything else was evicted, before anything is evicted for it.
    ///
    /// One system call for a value of at least 1 MiB, none for others.
    func refuseHopeless(_ length: Int, _ limits: CacheLimits) throws(CacheError) {
        guard length >= Self.longLength, let usage = parts.control.usage, usage.isCounted else { return }
        let space = try parts.directory.space()
        let floor = limits.minimumFree?.bytes(of: space.totalBytes) ?? 0
        if Double(length) > Double(usage.plausibleBytes) + Double(space.availableBytes) - Double(floor) {
            throw tooLarge(length, "that is more than all values take and the disk has free")
        }
    }

    /// 1 MiB: writing it takes a thousand times as long as reading the free space.
    private static let longLength = 1 << 20

    private func tooLarge(_ length: Int, _ limit: String) -> CacheError {
        CacheError(.valueTooLarge, to: "store \(length) bytes in", path: parts.directory.path, detail: limit)
    }
}

/// A structure, because a closure that is stored as a generic value is wrapped again at each access.
private struct PressureListener {
    let body: @Sendable () -> Void
}
