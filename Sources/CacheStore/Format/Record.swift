// SPDX-License-Identifier: Apache-2.0

package import Platform

/// What names a value's bytes and lets a reader check them.
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

/// What the cache keeps about one key: where its value is, until when it is good, and what it is.
///
/// What is set here is rounded at once to what the bytes on disk can say: times to the millisecond, down, so
/// that no value outlives its expiration. So the process that has stored a value judges it by the same
/// numbers as those that read it.
package struct Record: Sendable, Equatable {
    /// All of it that has a fixed size.
    var core: RecordCore
    /// The key in clear, unless it was too long or the cache keeps digests only.
    package var key: String?
    /// ``details``, if there are any, in an array.
    ///
    /// A record is copied on each path, and hardly one has them: to copy an array is to count one reference.
    private var attached: [RecordDetails]?

    package init(content: Content, created: Timestamp) {
        // Unrounded, the access time of a new entry, which is its time of creation, would lie after it and
        // count as an access. Before 1970 there is no number on disk.
        core = RecordCore(
            created: max(Timestamp(nanoseconds: 0), created.wholeMilliseconds),
            content: content
        )
    }

    /// The one that `core` was taken from, without its key and its details.
    init(_ core: RecordCore) {
        self.core = core
    }

    package var content: Content {
        get { core.content }
        set { core.content = newValue }
    }

    package var created: Timestamp { core.created }

    /// From this moment on the value is not given out any more, not before ``created``; nil: never expires.
    package var expires: Timestamp? {
        get { core.expiry }
        set { core.expires = newValue.map { max(created, $0.wholeMilliseconds) } ?? .distantFuture }
    }

    /// Sliding expiration: each access lets the value live at least this much longer; nil: it does not.
    package var idleLifetime: Duration? {
        get { RecordCore.span(core.idleLifetime) }
        set { core.idleLifetime = RecordCore.nanoseconds(newValue, atLeast: .milliseconds(1)) }
    }

    /// How long after its expiration the value is still given to callers that ask for stale values; kept also while it
    /// never expires, as it may be given an expiration later.
    package var staleFor: Duration? {
        get { RecordCore.span(core.staleFor) }
        set { core.staleFor = RecordCore.nanoseconds(newValue, atLeast: .zero) }
    }

    /// Has it expire at `moment`, whatever accesses have done; its stale period is then `period`, nil: what it was.
    package mutating func expire(at moment: Timestamp, staleFor period: Duration?) {
        core.expires = moment.wholeMilliseconds
        core.idleLifetime = -1
        if let period { staleFor = period }
    }

    /// What computing the value took, to about 6 per cent.
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

    /// Whether it says that there is no value: to everybody who asks for one it is a miss.
    package var isNothing: Bool { attached?.first?.isNothing ?? false }

    /// Whether other machines are told nothing of it.
    package var staysHere: Bool { attached?.first?.staysHere ?? false }
}

/// The part of a record that has a fixed size, as a table of many keeps it.
///
/// A new field of a fixed size goes here: then nothing that keeps or hands on a record can leave it out. Its bytes are
/// an item, in `RecordDetails.swift`.
struct RecordCore: Sendable, Equatable {
    let created: Timestamp
    /// `distantFuture` for none, as no record has that time: on disk are milliseconds.
    fileprivate(set) var expires = Timestamp.distantFuture
    /// Nanoseconds, as ``staleFor``; -1 for none.
    fileprivate(set) var idleLifetime: Int64 = -1
    fileprivate(set) var staleFor: Int64 = -1
    fileprivate(set) var content: Content
    /// A ``CostCode``.
    var cost: UInt8?

    /// nil: never expires.
    var expiry: Timestamp? { expires == .distantFuture ? nil : expires }

    /// Whether it may be given out to anybody, if accesses don't prolong it.
    func isFresh(at now: Timestamp) -> Bool {
        now.nanoseconds < expires.nanoseconds && !isOfFuture(at: now)
    }

    /// Whether a clock that was ahead stored it: its age and its end are not known.
    func isOfFuture(at now: Timestamp) -> Bool {
        created.advanced(byNanoseconds: -Record.clockToleranceNanoseconds) > now
    }

    fileprivate static func span(_ nanoseconds: Int64) -> Duration? {
        nanoseconds < 0 ? nil : .nanoseconds(nanoseconds)
    }

    /// -1 for nil.
    fileprivate static func nanoseconds(_ span: Duration?, atLeast least: Duration) -> Int64 {
        span.map { max(least, $0.wholeMilliseconds).saturatingNanoseconds } ?? -1
    }
}

/// How good a value still is.
package enum Freshness: Sendable, Equatable {
    /// To be given to everybody.
    case fresh
    /// Expired, to be given only to callers that ask for stale values.
    case stale
    /// To be given to nobody.
    case expired
}

extension Record {
    /// When the entry was last written or read, as far as `accessed`, its file's access time, tells.
    ///
    /// An overwrite leaves the file's time as it was, so the later of the two counts. A time that lies far
    /// in the future was set by a clock that has been put back since, and counts for nothing; one of creation neither.
    package func lastUse(accessed: Timestamp, now: Timestamp) -> Timestamp {
        let isAccessed = accessed <= now + Self.clockTolerance
        if isOfFuture(at: now) { return isAccessed ? accessed : Timestamp(nanoseconds: 0) }
        return isAccessed ? max(accessed, created) : created
    }

    /// How far an access, or the creation of a value, may lie after `now`.
    ///
    /// A caller takes the time before it looks, so what others have read or stored since then is later than its `now`,
    /// and counts all the same. One minute: a process that is not stopped is never delayed so long, and a clock that is
    /// put back by less does no harm, as a value then expires when the clock says so.
    package static let clockTolerance = Duration.nanoseconds(clockToleranceNanoseconds)
    static var clockToleranceNanoseconds: Int64 { 60_000_000_000 }

    /// Whether a clock that was ahead stored it: then it is a miss until that time.
    ///
    /// Where the clock was put back, all values may be; so a collection leaves them alone.
    package func isOfFuture(at now: Timestamp) -> Bool { core.isOfFuture(at: now) }

    /// The moment of expiry, nil for never.
    ///
    /// Of `accessed` only a sliding expiration takes notice.
    package func expiry(accessed: Timestamp, now: Timestamp) -> Timestamp? {
        guard let expires else { return nil }
        guard let idleLifetime, accessed > latestUncountedAccess, accessed <= now + Self.clockTolerance else {
            return expires
        }
        return max(expires, accessed + idleLifetime)
    }

    /// Accesses up to here may have been of the value before: a record knows the millisecond in which it was
    /// created and no more.
    package var latestUncountedAccess: Timestamp { created + .nanoseconds(999_999) }

    /// Whether it was stored before `oldest`; nil: nothing is too old.
    package func isOlder(than oldest: Timestamp?) -> Bool { oldest.map { created < $0 } ?? false }

    /// Until when a value that was just written may be given out from memory without a look at the disk; nil:
    /// for ever.
    ///
    /// One that accesses prolong is looked at when the next access is due to be noted.
    package var heldUntil: Timestamp? {
        guard let expires, let idleLifetime else { return expires }
        return min(expires, created + idleLifetime / 16)
    }

    /// From when on a collection may remove the value, if nobody renews it; nil: never, or accesses prolong its life.
    package var removableAt: Timestamp? {
        guard idleLifetime == nil, let expires else { return nil }
        return expires + (staleFor ?? .zero)
    }

    /// How good the value is at `now`.
    package func freshness(at now: Timestamp, accessed: Timestamp) -> Freshness {
        if isOfFuture(at: now) { return .expired }
        guard let expiry = expiry(accessed: accessed, now: now), now >= expiry else { return .fresh }
        guard let staleFor else { return .expired }
        // The stale period follows the expiry wherever accesses have moved that.
        return now < expiry + staleFor ? .stale : .expired
    }
}

/// Whether entries have lost their records: what a copy of a cache is without the extended attributes.
package enum RecordLoss {
    /// More than these are no killed puts', however many entries there are: each leaves one for each of its threads,
    /// until the next collection.
    private static let mostUnfinished = 1000

    /// Whether more than a quarter of the entries have none, or more than killed puts leave.
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
        // Half a step is added before cutting, so that the error is at most half a step either way.
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

    /// Cut to whole milliseconds, towards zero, and to some 292 years.
    var wholeMilliseconds: Duration { .milliseconds(milliseconds) }
}
