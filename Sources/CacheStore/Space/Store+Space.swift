// SPDX-License-Identifier: Apache-2.0

import Platform

/// How long a call waits for space, and how long it has waited.
package struct SpaceWait {
    /// The longest time that the call waits for space or makes space; nil for ``StoreOptions/roomPatience``.
    package var patience: Duration?
    /// Called once if the wait for space takes longer than a moment, so that processes that wait for the caller can
    /// continue.
    package var whileWaiting: () -> Void
    /// The time that the call has spent waiting for space or making space.
    var spent: Duration = .zero
    /// The wait for space on a full disk, from the first failure on.
    var fullDisk: JanitorWait?

    /// The longest time to wait for one stripe after the wait for space.
    ///
    /// Together with `spent` it is less than a second, even if the call has waited for a stopped process. A process that
    /// runs holds a stripe for microseconds.
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

/// The space that one put needs.
struct SpaceNeed {
    /// Bytes on disk of the value and its entry.
    var bytes: Int64
    var entries: Int
    /// The part of `bytes` that is on disk already.
    let written: Int64
    /// Bytes on disk of the value that is replaced; 0 if none is.
    var replaced: Int64 = 0
}

/// A put that may replace the value of its key.
struct Replacement {
    let key: Digest
    let content: Content
    /// Whether the old value may be removed before the new one is written.
    let mayGoFirst: Bool
}

/// The space that puts reserve, so that a directory stays within its limits.
///
/// Before a put writes new bytes, it claims their space in words that all processes share. So the directory stays below
/// its limits however many writers there are. A put that finds no space makes some, or waits while another process does.
/// The claim of a killed or stopped process is forgotten within a second of further claims
/// (``Control/claim(_:entries:)``). A slow writer whose claim was forgotten claims again before it publishes.
extension Store {
    /// Returns a wait for the janitor lock that has not started; it lasts for as long as `wait` still allows.
    func janitorWait(_ wait: SpaceWait) -> JanitorWait {
        JanitorWait(
            for: janitor,
            patience: max(.zero, wait.patience ?? space.patience) - wait.spent,
            whileWaiting: wait.whileWaiting
        )
    }

    // MARK: Occupancy

    /// Returns the usage of the directory including all claims; nil if it is unknown.
    ///
    /// It is unknown if there is no control file, or if no sweep has counted the directory since the control file was
    /// created.
    ///
    /// One system call if a minimum of free space is set, otherwise none.
    ///
    /// - Parameters:
    ///   - entering: the number of entries to add.
    ///   - written: the claimed bytes that are on disk already, so that the free space does not include them.
    package func occupancy(
        _ limits: CacheLimits,
        entering: Int = 0,
        written: Int64 = 0
    ) throws(CacheError) -> Occupancy? {
        guard let usage = control.usage, usage.isCounted else { return nil }
        let claimed = control.claimed
        return Occupancy(
            bytes: usage.plausibleBytes + claimed.bytes,
            overhead: overhead,
            entries: usage.plausibleEntries + claimed.entries + entering,
            space: limits.minimumFree == nil ? nil : try directory.space(),
            claimed: claimed.bytes - written
        )
    }

    /// Returns the excess over the low mark if the usage is over the high mark; otherwise returns nil.
    package func overflow() throws(CacheError) -> Excess? {
        let limits = configuration.limits
        guard limits.areBounding, let occupancy = try occupancy(limits) else { return nil }
        return limits.overflow(of: occupancy)
    }

    /// Whether the usage is over the high mark, so that the janitor should not rest.
    ///
    /// It is also false if an error prevents the check; the next put reports that error.
    package var isPressed: Bool {
        do throws(CacheError) {
            return try overflow() != nil
        } catch {
            return false
        }
    }

    /// Sets the function that is called when a put passes the high mark.
    ///
    /// It is called often, on the thread of the put. So it should only wake another thread.
    package func onPressure(_ body: @escaping @Sendable () -> Void) {
        let listener = PressureListener(body: body)
        space.pressed.withLock { $0 = listener }
    }

    // MARK: Reservations

    /// Reserves space for a value of `length` bytes and its entry within the current limits, and waits if there is no
    /// space.
    ///
    /// - Parameters:
    ///   - length: the length of the value.
    ///   - record: the length of its record.
    ///   - entries: the number of entries to add, unless one is replaced.
    ///   - isWritten: whether the bytes of the value are on disk already.
    ///   - replacement: the put, if it may replace another value. Whether it does is checked only if the limits leave no
    ///     space for an additional value.
    ///   - now: the caller's time.
    ///   - wait: how to wait if there is no space.
    /// - Throws: ``CacheError/Code/valueTooLarge`` for a value that can never fit, ``CacheError/Code/noRoom`` if nothing
    ///   could be evicted in time.
    func reserve(
        length: Int,
        record: Int,
        entries: Int = 1,
        isWritten: Bool = false,
        replacing replacement: Replacement? = nil,
        now: Timestamp,
        _ wait: inout SpaceWait
    ) throws(CacheError) -> Reservation {
        if followed.isDue() { followConfiguration() }
        let whole = try need(forLength: length, record: record, entries: entries, isWritten: isWritten)
        guard var need = whole else { return Reservation() }
        try countIfUnknown(need, now: now, &wait)
        var reservation = Reservation()
        if try attempt(need, &reservation) == nil { return reservation }
        if let replacement, let old = try self.entries.read(replacement.key) {
            let difference = self.need(need, of: replacement.content, replacing: old)
            guard let excess = try attempt(difference, &reservation) else { return reservation }
            if replacement.mayGoFirst, shouldGoFirst(difference, excess) {
                try makeWay(for: replacement.key, removing: old)
            } else {
                need = difference
            }
        }
        return try waitForSpace(need, now: now, &wait)
    }

    /// Removes the entry that a put is about to replace, if it is unchanged, so that a sweep can delete its value.
    private func makeWay(for key: Digest, removing observed: StoredEntry) throws(CacheError) {
        let lock = try entries.stripes.lock(.exclusive, stripe: key.stripe)
        guard StoredEntry.areSame(try entries.read(key), observed) else { return }
        let change = try control.beginChange(of: key, publishes: false)
        try rememberVersion(of: key, under: lock)
        _ = try entries.delete(key, under: lock)
        change.end()
        if let record = observed.record { control.noteRemoval(of: record) }
        counters.add(.sweptSize)
        log(.collected(.size), of: key, name: observed.record?.key)
    }

    /// Returns the space that a value of `length` bytes and its entry need; nil if no limit makes a claim necessary.
    ///
    /// - Parameters:
    ///   - length: the length of the value.
    ///   - record: the length of its record.
    ///   - entries: the number of entries to add.
    ///   - isWritten: whether the bytes of the value are on disk already.
    /// - Throws: ``CacheError/Code/valueTooLarge`` for a value that can never fit; the error if the limits can't be read.
    func need(forLength length: Int, record: Int, entries: Int, isWritten: Bool) throws(CacheError)
        -> SpaceNeed?
    {
        let limits = try followed.limitsForPut()
        let value = control.expectedAllocation(of: length)
        let bytes = value + self.entries.expectedAllocation(ofRecord: record)
        try refuse(length, taking: bytes, limits)
        guard limits.areBounding else { return nil }
        if !isWritten { try refuseHopeless(length, limits) }
        return SpaceNeed(bytes: bytes, entries: entries, written: isWritten ? value : 0)
    }

    /// Returns the space that a value needs if it replaces another one: `need` without the space of the old entry.
    ///
    /// Both values are on disk until the next sweep deletes the old one, which no entry names anymore.
    func need(_ need: SpaceNeed, of content: Content, replacing old: StoredEntry) -> SpaceNeed {
        var need = need
        need.entries = 0
        need.bytes = max(0, need.bytes - entries.expectedAllocation(ofRecord: old.bytes.count))
        if let value = old.record?.content, value.digest != content.digest {
            need.replaced = control.expectedAllocation(of: value.length)
        }
        return need
    }

    /// Returns whether to remove the old value first because there is no room for both.
    ///
    /// That is so if the old value is at least as large as the excess, and large enough to justify the cost of the sweep.
    func shouldGoFirst(_ need: SpaceNeed, _ excess: Excess) -> Bool {
        let entries = control.usage?.plausibleEntries ?? .max
        return excess.entries == 0 && need.replaced >= excess.bytes
            && need.replaced / Self.worthOfEntry >= Int64(clamping: entries)
    }

    /// The number of bytes that can be written in about the time that a sweep takes for one entry.
    private static let worthOfEntry: Int64 = 4096

    /// Reserves space again if the claim was forgotten; returns false if there is no space at this moment.
    ///
    /// It does not wait, so the caller may hold a stripe.
    ///
    /// - Parameter written: the bytes that are on disk already.
    func renew(_ reservation: inout Reservation, written: Int64) throws(CacheError) -> Bool {
        guard let old = reservation.claim, !old.isStanding else { return true }
        let need = SpaceNeed(bytes: old.bytes, entries: old.entries, written: written)
        return try attempt(need, &reservation) == nil
    }

    /// Until the next sweep, replaced values may exceed the size limit by the limit divided by this number.
    ///
    /// Otherwise each put that replaces a value would have to evict another value. With 128, all writers together stay
    /// well below 1.05 times the limit.
    private static let partForReplaced: Int64 = 128

    /// Returns by how many bytes a put may exceed the size limit until the next sweep.
    ///
    /// It is 0 unless the value that the put replaces is at least as large as the space that the put needs.
    private func excessForNow(_ need: SpaceNeed, _ limits: CacheLimits) -> Int64 {
        need.bytes > need.replaced ? 0 : (limits.maximumSize?.bytes ?? 0) / Self.partForReplaced
    }

    /// Returns the excess that must be evicted first; `occupancy` includes the need.
    private func lack(_ need: SpaceNeed, _ occupancy: Occupancy, _ limits: CacheLimits) -> Excess? {
        var excess = limits.excess(of: occupancy)
        guard let reason = excess.reason else { return nil }
        let forNow = excessForNow(need, limits)
        if reason == .size, excess.freeSpace == 0, excess.size <= forNow { return nil }
        guard need.replaced > 0 else { return limits.excess(of: occupancy, over: CacheLimits.roomMark) }
        // The new value takes the room of the old one.
        excess.size -= min(need.bytes, forNow, max(0, excess.size - 1))
        return excess
    }

    /// Makes the reservation and returns nil; if there is no space, returns the excess to remove first and leaves
    /// `reservation` unchanged.
    private func attempt(_ need: SpaceNeed, _ reservation: inout Reservation) throws(CacheError) -> Excess? {
        let limits = configuration.limits
        // Claim first and check afterwards: of two concurrent writers at least one sees the claim of the other.
        let fresh = Reservation(control.claim(need.bytes, entries: need.entries))
        // A put that takes nothing needs no space.
        if need.bytes > 0 || need.entries > 0, let occupancy = try occupancy(limits, written: need.written) {
            if limits.overflow(of: occupancy) != nil, let pressed = space.pressed.withLock({ $0 }) {
                pressed.body()
            }
            if let lack = lack(need, occupancy, limits) { return lack }
        }
        reservation = fresh
        return nil
    }

    /// Makes space, or waits while another process does, and then reserves the space.
    ///
    /// - Throws: ``CacheError/Code/noRoom`` if nothing could be evicted in time.
    private func waitForSpace(
        _ need: SpaceNeed,
        now: Timestamp,
        _ wait: inout SpaceWait
    ) throws(CacheError) -> Reservation {
        counters.add(.roomWait)
        var janitor = janitorWait(wait)
        defer { wait.spent += janitor.elapsed }
        janitor.begin()
        var relief: Relief?
        var reservation = Reservation()
        while let excess = try attempt(need, &reservation) {
            if let relief {
                let goesOn =
                    switch relief {
                    case .done, .little: !janitor.isOver
                    case .busy: try janitor.pause()
                    case .impossible, .unfinished: false
                    }
                guard goesOn else {
                    counters.add(.roomFailure)
                    throw noRoom(need.bytes, excess, relief, janitor)
                }
            }
            let pace = SweepPace(until: janitor.deadline)
            relief = try relieve(excess, now: now + janitor.elapsed, pace: pace)
            if followed.isDue() { followed.look() }
        }
        return reservation
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
            case .unfinished: "finding what to evict takes longer than \(wait.effort)"
            case .busy, .done, .little: wait.hindrance ?? "no room was made in \(wait.patience)"
            }
        let detail = "it is at its limit of \(limit), and \(reason)"
        return CacheError(.noRoom, to: "store \(bytes) bytes in", path: directory.path, detail: detail)
    }

    // MARK: Values that can never fit

    /// The length of the longest value that the limits allow.
    package var longestValue: Int64? {
        let limits = configuration.limits
        let room = limits.maximumSize.map { max(0, $0.bytes - overhead) }
        guard let most = limits.maximumValueSize?.bytes else { return room }
        return min(most, room ?? most)
    }

    /// Refuses a value that is longer than the limits allow for any value, even if its bytes exist already.
    func refuseTooLong(_ length: Int) throws(CacheError) {
        try refuse(length, taking: 0, followed.limitsForPut())
    }

    /// - Parameter bytes: the size on disk of the value and its entry.
    private func refuse(_ length: Int, taking bytes: Int64, _ limits: CacheLimits) throws(CacheError) {
        if let most = limits.maximumValueSize?.bytes, Int64(length) > most {
            throw tooLarge(length, "the longest value is \(most) bytes")
        }
        let room = limits.maximumSize.map { $0.bytes - overhead }
        if let room, bytes > room {
            throw tooLarge(length, "all values together may take \(max(0, room)) bytes")
        }
    }

    /// Refuses a value that would not fit even if everything else was evicted, so that nothing is evicted in vain.
    ///
    /// One system call for a value of at least 1 MiB, otherwise none.
    func refuseHopeless(_ length: Int, _ limits: CacheLimits) throws(CacheError) {
        guard length >= Self.longLength, let usage = control.usage, usage.isCounted else { return }
        let space = try directory.space()
        let floor = limits.minimumFree?.bytes(of: space.totalBytes) ?? 0
        if Double(length) > Double(usage.plausibleBytes) + Double(space.availableBytes) - Double(floor) {
            throw tooLarge(length, "that is more than all values take and the disk has free")
        }
    }

    /// 1 MiB: writing it takes a thousand times as long as reading the free space.
    private static let longLength = 1 << 20

    private func tooLarge(_ length: Int, _ limit: String) -> CacheError {
        CacheError(.valueTooLarge, to: "store \(length) bytes in", path: directory.path, detail: limit)
    }
}
