// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The identity of a value's bytes, by which a reader finds and checks them.
package struct Content: Sendable, Hashable {
    /// SHA-256 of the bytes: the object's name.
    package let digest: Digest
    /// Length in bytes.
    package let length: Int
    /// CRC-32C of the bytes, checked on each read: SHA-256 would cost thirty times as much there.
    package let checksum: UInt32

    package init(digest: Digest, length: Int, checksum: UInt32) {
        self.digest = digest
        self.length = length
        self.checksum = checksum
    }

    /// Describes bytes in memory.
    package init(of bytes: Span<UInt8>) {
        self.init(digest: Digest(of: bytes), length: bytes.count, checksum: CRC32C.checksum(bytes))
    }
}

/// The metadata that the cache keeps about one key: its value, its expiration, and a description.
///
/// Each field is rounded when it is set, to the precision on disk: times down to the millisecond, so that no value outlives
/// its expiration. So the process that stored a value judges it by the same numbers as the processes that read it.
package struct Record: Sendable, Equatable {
    /// All fields of a fixed size.
    var core: RecordCore
    /// The key in clear, unless it was too long or the cache keeps digests only.
    package var key: String?
    /// The ``details``, if there are any, in an array.
    ///
    /// Records are copied on each path, and few have details: copying an array only counts one reference.
    private var attached: [RecordDetails]?

    package init(content: Content, created: Timestamp) {
        // The access time of a new entry is its creation time. Unrounded, it would lie after the stored creation time and
        // count as an access. Times before 1970 can't be stored.
        core = RecordCore(
            created: max(Timestamp(nanoseconds: 0), created.wholeMilliseconds),
            content: content
        )
    }

    /// Creates a record from its core, without the key and the details.
    init(_ core: RecordCore) {
        self.core = core
    }

    package var content: Content {
        get { core.content }
        set { core.content = newValue }
    }

    package var created: Timestamp { core.created }

    /// When the value expires, not before ``created``; nil if it never does.
    ///
    /// From this moment on the value is no longer returned.
    package var expires: Timestamp? {
        get { core.expiry }
        set { core.expires = newValue.map { max(created, $0.wholeMilliseconds) } ?? .distantFuture }
    }

    /// The sliding expiration: each access lets the value live at least this much longer; nil if accesses have no effect.
    package var idleLifetime: Duration? {
        get { RecordCore.span(core.idleLifetime) }
        set { core.idleLifetime = RecordCore.nanoseconds(newValue, atLeast: .milliseconds(1)) }
    }

    /// How long after its expiration the value is still returned to callers that ask for stale values.
    ///
    /// It is kept even if the value never expires, because an expiration may be set later.
    package var staleFor: Duration? {
        get { RecordCore.span(core.staleFor) }
        set { core.staleFor = RecordCore.nanoseconds(newValue, atLeast: .zero) }
    }

    /// Expires the value at `moment`, whatever accesses have done.
    ///
    /// Its stale period is then `period`; unchanged if that is nil.
    package mutating func expire(at moment: Timestamp, staleFor period: Duration?) {
        core.expires = moment.wholeMilliseconds
        core.idleLifetime = -1
        if let period { staleFor = period }
    }

    /// How long it took to compute the value, to about 6 per cent.
    package var cost: Duration? {
        get { core.cost.map(CostCode.decode) }
        set { core.cost = newValue.map(CostCode.encode) }
    }

    package var details: RecordDetails {
        get { attached?.first ?? RecordDetails() }
        set { attached = newValue.isEmpty ? nil : [newValue] }
    }

    /// Whether there are any ``details``.
    package var hasDetails: Bool { attached != nil }

    /// Whether the record states that there is no value: every lookup is a miss.
    package var isNothing: Bool { attached?.first?.isNothing ?? false }

    /// Whether the entry is never sent to remote stores.
    package var staysHere: Bool { attached?.first?.staysHere ?? false }
}

/// The fields of a record that have a fixed size, as a table of many records stores them.
///
/// A new field of a fixed size goes here: then no code that stores or passes on records can omit it. Its bytes are an item,
/// in `RecordDetails.swift`.
struct RecordCore: Sendable, Equatable {
    let created: Timestamp
    /// `distantFuture` for none: no record has that time, as times on disk are in milliseconds.
    fileprivate(set) var expires = Timestamp.distantFuture
    /// In nanoseconds, like ``staleFor``; -1 for none.
    fileprivate(set) var idleLifetime: Int64 = -1
    fileprivate(set) var staleFor: Int64 = -1
    fileprivate(set) var content: Content
    /// A ``CostCode``.
    var cost: UInt8?

    /// The expiration; nil if there is none.
    var expiry: Timestamp? { expires == .distantFuture ? nil : expires }

    /// Returns whether the value may be returned to all callers, if accesses don't prolong its life.
    func isFresh(at now: Timestamp) -> Bool {
        now.nanoseconds < expires.nanoseconds && !isOfFuture(at: now)
    }

    /// Returns whether a clock that was ahead stored the value: its age and its expiration are unknown.
    func isOfFuture(at now: Timestamp) -> Bool {
        created.advanced(byNanoseconds: -Record.clockToleranceNanoseconds) > now
    }

    fileprivate static func span(_ nanoseconds: Int64) -> Duration? {
        nanoseconds < 0 ? nil : .nanoseconds(nanoseconds)
    }

    /// Returns the nanoseconds of a span; -1 for nil.
    fileprivate static func nanoseconds(_ span: Duration?, atLeast least: Duration) -> Int64 {
        span.map { max(least, $0.wholeMilliseconds).saturatingNanoseconds } ?? -1
    }
}

/// Whether a value may be returned.
package enum Freshness: Sendable, Equatable {
    /// May be returned to all callers.
    case fresh
    /// Expired; may be returned only to callers that ask for stale values.
    case stale
    /// Must not be returned.
    case expired
}

extension Record {
    /// Returns when the entry was last written or read, judging by `accessed`, its file's access time.
    ///
    /// An overwrite leaves the file's time unchanged, so the later of the two counts. A time far in the future was set by a
    /// clock that has been put back since, and is ignored; so is such a creation time.
    package func lastUse(accessed: Timestamp, now: Timestamp) -> Timestamp {
        let isAccessed = accessed <= now + Self.clockTolerance
        if isOfFuture(at: now) { return isAccessed ? accessed : Timestamp(nanoseconds: 0) }
        return isAccessed ? max(accessed, created) : created
    }

    /// How far an access, or the creation of a value, may lie after `now`.
    ///
    /// A caller takes the time before a lookup, so values that other processes have read or stored since then are later than
    /// its `now`, and are valid. One minute: a process that is not stopped is never delayed this long, and a clock that is
    /// put back by less does no harm, as a value then expires when the clock says so.
    package static let clockTolerance = Duration.nanoseconds(clockToleranceNanoseconds)
    static var clockToleranceNanoseconds: Int64 { 60_000_000_000 }

    /// Returns whether a clock that was ahead stored the value: then it is a miss until that time.
    ///
    /// If the clock was put back, this may apply to all values; so a collection leaves them alone.
    package func isOfFuture(at now: Timestamp) -> Bool { core.isOfFuture(at: now) }

    /// Returns the moment of expiry, nil for never.
    ///
    /// `accessed` matters only with a sliding expiration.
    package func expiry(accessed: Timestamp, now: Timestamp) -> Timestamp? {
        guard let expires else { return nil }
        guard let idleLifetime, accessed > latestUncountedAccess, accessed <= now + Self.clockTolerance else {
            return expires
        }
        return max(expires, accessed + idleLifetime)
    }

    /// Accesses up to this time may have been of the previous value: a record has its creation time only to the millisecond.
    package var latestUncountedAccess: Timestamp { created + .nanoseconds(999_999) }

    /// Returns whether the value was stored before `oldest`; false if that is nil.
    package func isOlder(than oldest: Timestamp?) -> Bool { oldest.map { created < $0 } ?? false }

    /// Until when a value that was just written may be returned from memory without checking the disk; nil for no limit.
    ///
    /// A value whose life is prolonged by accesses is checked when the next access is due to be noted.
    package var heldUntil: Timestamp? {
        guard let expires, let idleLifetime else { return expires }
        return min(expires, created + idleLifetime / 16)
    }

    /// When a collection may remove the value unless it is renewed; nil for never, or if accesses prolong its life.
    package var removableAt: Timestamp? {
        guard idleLifetime == nil, let expires else { return nil }
        return expires + (staleFor ?? .zero)
    }

    /// Returns the freshness of the value at `now`.
    package func freshness(at now: Timestamp, accessed: Timestamp) -> Freshness {
        if isOfFuture(at: now) { return .expired }
        guard let expiry = expiry(accessed: accessed, now: now), now >= expiry else { return .fresh }
        guard let staleFor else { return .expired }
        // The stale period follows the expiry, even if accesses have moved it.
        return now < expiry + staleFor ? .stale : .expired
    }
}

/// Whether entries have lost their records, as in a copy of a cache without the extended attributes.
package enum RecordLoss {
    /// The maximum number of entries without records that killed puts leave, however many entries there are.
    ///
    /// Each process leaves at most one for each of its threads, until the next collection.
    private static let mostUnfinished = 1000

    /// Returns whether more than a quarter of the entries have no record, or more than killed puts leave.
    ///
    /// A single one never counts: it may be a put that was killed, the first of a cache.
    package static func isLikely(without: Int, of entries: Int) -> Bool {
        without > mostUnfinished || (without > 1 && without > entries / 4)
    }
}

/// A span of time in one byte, to about 6 per cent: 5 bits of exponent, 3 of mantissa, from 64 µs to 12 days.
///
/// Early recomputation (XFetch) needs no more, and the record has no room for more.
enum CostCode {
    static func encode(_ cost: Duration) -> UInt8 {
        let units = UInt64(max(0, cost.saturatingNanoseconds)) / 64_000
        guard units >= 8 else { return UInt8(units) }
        let exponent = 63 - units.leadingZeroBitCount - 3
        // Half a step is added before truncation, so that the error is at most half a step either way.
        let rounded = units + (1 << exponent) / 2
        let shift = 63 - rounded.leadingZeroBitCount - 3
        let code = (shift + 1) << 3 | Int(rounded >> UInt64(shift) & 7)
        return UInt8(min(code, 255))
    }

    static func decode(_ code: UInt8) -> Duration {
        let exponent = Int(code >> 3)
        let units = exponent == 0 ? Int64(code) : Int64(8 | code & 7) << Int64(exponent - 1)
        return .nanoseconds(units * 64_000)
    }
}

extension Duration {
    /// Whole milliseconds, towards zero.
    var milliseconds: Int64 { saturatingNanoseconds / 1_000_000 }

    /// The duration in whole milliseconds, rounded towards zero, and limited to some 292 years.
    var wholeMilliseconds: Duration { .milliseconds(milliseconds) }
}
