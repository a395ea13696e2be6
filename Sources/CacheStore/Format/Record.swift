// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The identity of a value's bytes, by which a reader finds and checks them.
package struct Content: Sendable, Hashable {
    /// SHA-256 of the bytes: the object's name.
    package let digest: Digest
    /// Length in bytes.
    package let length: Int
    /// CRC-32C of the bytes, checked on each read; SHA-256 would cost thirty times as much.
    package let checksum: UInt32

    package init(digest: Digest, length: Int, checksum: UInt32) {
        self.digest = digest
        self.length = length
        self.checksum = checksum
    }

    /// Computes the identity of bytes in memory.
    package init(of bytes: Span<UInt8>) {
        self.init(digest: Digest(of: bytes), length: bytes.count, checksum: CRC32C.checksum(bytes))
    }
}

/// The metadata that the cache keeps about one key: its value, its expiration, and a description.
///
/// Each field is rounded to the precision on disk when it is set, so the process that stores a value uses the same
/// numbers as the processes that read it. Times are rounded down to the millisecond, so that no value outlives its
/// expiration.
package struct Record: Sendable, Equatable {
    /// All fields of a fixed size.
    var core: RecordCore
    /// The key as text; nil if it was too long or the cache keeps digests only.
    package var key: String?
    /// An array that contains the ``details``; nil if there are none.
    ///
    /// Records are copied often and few have details: copying an array only increments one reference count.
    private var attached: [RecordDetails]?

    package init(content: Content, created: Timestamp) {
        // The access time of a new entry is its creation time. If it were not rounded, it would be later than the stored
        // creation time and count as an access. Times before 1970 can't be stored.
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

    /// The sliding expiration: the value stays valid for at least this long after each access; nil if accesses have no
    /// effect.
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

    /// Makes the value expire at `moment`, regardless of accesses.
    ///
    /// Its stale period becomes `period`, or stays unchanged if that is nil.
    package mutating func expire(at moment: Timestamp, staleFor period: Duration?) {
        core.expires = moment.wholeMilliseconds
        core.idleLifetime = -1
        if let period { staleFor = period }
    }

    /// How long it took to compute the value, accurate to about 6 percent.
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

    /// The ``version`` that is stored in the record; nil if there is none.
    var storedVersion: ChangeVersion? { attached?.first?.version }

    /// The version of the change that stored the entry.
    ///
    /// A record without one was written before the directory used remote stores: its creation time takes its place.
    package var version: ChangeVersion {
        get { storedVersion ?? ChangeVersion(at: created, machine: 0) }
        set { details.version = newValue }
    }

    /// Whether the record states that there is no value, so that every lookup is a miss.
    package var isNothing: Bool { attached?.first?.isNothing ?? false }

    /// Whether the entry is never sent to remote stores.
    package var staysHere: Bool { attached?.first?.staysHere ?? false }
}

/// The fields of a record that have a fixed size, as a table of many records stores them.
///
/// Add a new field of a fixed size here, so that no code that stores or passes on records can omit it. Encode it as an
/// item in `RecordDetails.swift`.
struct RecordCore: Sendable, Equatable {
    let created: Timestamp
    /// The expiration; `distantFuture` if there is none.
    ///
    /// No record has that time, because times on disk are in milliseconds.
    fileprivate(set) var expires = Timestamp.distantFuture
    /// In nanoseconds, like ``staleFor``; -1 for none.
    fileprivate(set) var idleLifetime: Int64 = -1
    fileprivate(set) var staleFor: Int64 = -1
    fileprivate(set) var content: Content
    /// A ``CostCode``.
    var cost: UInt8?

    /// The expiration; nil if there is none.
    var expiry: Timestamp? { expires == .distantFuture ? nil : expires }

    /// Returns whether the value may be returned to all callers, without regard to a sliding expiration.
    func isFresh(at now: Timestamp) -> Bool {
        now.nanoseconds < expires.nanoseconds && !isOfFuture(at: now)
    }

    /// Returns whether the creation time is in the future by more than the tolerance.
    ///
    /// A process whose clock was ahead stored the value, so its age and its expiration are unknown.
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
    /// Returns when the entry was last written or read; `accessed` is the access time of its file.
    ///
    /// Overwriting an entry leaves the access time unchanged, so the later of the access time and the creation time
    /// counts. Either time is ignored if it is in the future by more than ``clockTolerance``: it was set by a clock that
    /// has been set back since.
    package func lastUse(accessed: Timestamp, now: Timestamp) -> Timestamp {
        let isAccessed = accessed <= now + Self.clockTolerance
        if isOfFuture(at: now) { return isAccessed ? accessed : Timestamp(nanoseconds: 0) }
        return isAccessed ? max(accessed, created) : created
    }

    /// How far an access, or the creation of a value, may lie after `now`.
    ///
    /// A caller reads the clock before a lookup. Values that other processes read or store after that have times later
    /// than the caller's `now`, and are valid. One minute, because a process that is not stopped is never delayed this
    /// long. Setting the clock back by less does no harm: a value then expires when the clock reaches its expiration.
    package static let clockTolerance = Duration.nanoseconds(clockToleranceNanoseconds)
    static var clockToleranceNanoseconds: Int64 { 60_000_000_000 }

    /// Returns whether the creation time is more than ``clockTolerance`` in the future; the value is a miss until then.
    ///
    /// If the clock was set back, this may apply to all values, so a collection leaves such values alone.
    package func isOfFuture(at now: Timestamp) -> Bool { core.isOfFuture(at: now) }

    /// Returns when the value expires; nil if it never does.
    ///
    /// `accessed` matters only with a sliding expiration.
    package func expiry(accessed: Timestamp, now: Timestamp) -> Timestamp? {
        guard let expires else { return nil }
        guard let idleLifetime, accessed > latestUncountedAccess, accessed <= now + Self.clockTolerance else {
            return expires
        }
        return max(expires, accessed + idleLifetime)
    }

    /// The latest access time that does not count as an access of this value.
    ///
    /// The creation time is stored only to the millisecond, so an access up to this time may have been of the previous
    /// value.
    package var latestUncountedAccess: Timestamp { created + .nanoseconds(999_999) }

    /// Returns whether the value was stored before `oldest`; false if that is nil.
    package func isOlder(than oldest: Timestamp?) -> Bool { oldest.map { created < $0 } ?? false }

    /// Until when a value that was just written may be returned from memory without checking the disk; nil for no limit.
    ///
    /// A value with a sliding expiration is checked on disk when its next access is due to be recorded.
    package var heldUntil: Timestamp? {
        guard let expires, let idleLifetime else { return expires }
        return min(expires, created + idleLifetime / 16)
    }

    /// When a collection may remove the value unless it is renewed; nil if never, or if the value has a sliding
    /// expiration.
    package var removableAt: Timestamp? {
        guard idleLifetime == nil, let expires else { return nil }
        return expires + (staleFor ?? .zero)
    }

    /// Returns the freshness of the value at `now`.
    package func freshness(at now: Timestamp, accessed: Timestamp) -> Freshness {
        if isOfFuture(at: now) { return .expired }
        guard let expiry = expiry(accessed: accessed, now: now), now >= expiry else { return .fresh }
        guard let staleFor else { return .expired }
        // The stale period begins at the expiry, even if accesses have postponed that.
        return now < expiry + staleFor ? .stale : .expired
    }
}

/// Detects that entries have lost their records, as in a copy of a cache without the extended attributes.
package enum RecordLoss {
    /// The maximum number of entries without records that killed puts leave, regardless of the number of entries.
    ///
    /// Each killed process leaves at most one per thread, until the next collection.
    private static let mostUnfinished = 1000

    /// Returns whether more than a quarter of the entries have no record, or more entries than killed puts can leave.
    ///
    /// A single one never counts: a cache may contain nothing but the entry of a put that was killed.
    package static func isLikely(without: Int, of entries: Int) -> Bool {
        without > mostUnfinished || (without > 1 && without > entries / 4)
    }
}

/// A span of time in one byte, accurate to about 6 percent: 5 bits of exponent, 3 of mantissa, from 64 µs to 12 days.
///
/// Early recomputation (XFetch) needs no more precision, and the record has no room for more.
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

    /// The duration in whole milliseconds, rounded towards zero, and limited to about 292 years.
    var wholeMilliseconds: Duration { .milliseconds(milliseconds) }
}
