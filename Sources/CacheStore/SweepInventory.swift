// SPDX-License-Identifier: Apache-2.0

import Platform

// What a sweep keeps of all that it has seen: at a million entries each byte here is a megabyte. So nothing
// holds a string or an object of its own, and an entry with a value of its own takes about 120 bytes.

/// Bytes on disk in 32 bits: in blocks of 512 bytes up to 1 TiB, above that in whole MiB, rounded up.
struct AllocatedSize: Sendable, Equatable {
    private let code: UInt32

    private static let isLarge: UInt32 = 1 << 31
    private static let block: Int64 = 512
    private static let largeBlock: Int64 = 1 << 20

    /// - Parameter bytes: not negative.
    init(bytes: Int64) {
        let blocks = bytes / Self.block + (bytes % Self.block > 0 ? 1 : 0)
        if blocks < Int64(Self.isLarge) {
            code = UInt32(max(0, blocks))
        } else {
            let large = bytes / Self.largeBlock + (bytes % Self.largeBlock > 0 ? 1 : 0)
            code = Self.isLarge | UInt32(min(large, Int64(Self.isLarge) - 1))
        }
    }

    var bytes: Int64 {
        code & Self.isLarge == 0
            ? Int64(code) * Self.block : Int64(code & ~Self.isLarge) * Self.largeBlock
    }
}

/// An entry that stays unless the plan says otherwise, as a sweep saw it: 64 bytes.
struct SeenEntry: Sendable {
    /// What is to be done with it whatever the limits for all entries together say.
    enum Verdict: UInt8, Sendable {
        /// Nothing.
        case none
        /// It has expired.
        case expired
        /// Its record does not parse, or it has none.
        case corrupt
        /// It is older than the age limit, or unused for longer than the idle limit.
        case age, idle
    }

    let key: Digest
    let lastUse: Timestamp
    /// A verdict in the lowest 8 bits, and the witness in the others.
    private let witnessAndVerdict: UInt64
    /// Bytes on disk of the entry's own file.
    let allocatedSize: AllocatedSize
    /// The lower half of its inode number.
    let inode: UInt32
    /// The place of what it names in ``SweepContents``; nothing where it is corrupt.
    var content: UInt32 = .max

    init(
        key: Digest,
        lastUse: Timestamp,
        verdict: Verdict,
        witness: UInt64,
        allocatedSize: AllocatedSize,
        inode: UInt32
    ) {
        self.key = key
        self.inode = inode
        self.lastUse = lastUse
        witnessAndVerdict = witness << 8 | UInt64(verdict.rawValue)
        self.allocatedSize = allocatedSize
    }

    var verdict: Verdict { Verdict(rawValue: UInt8(truncatingIfNeeded: witnessAndVerdict)) ?? .none }

    /// Whether the bytes of the record and `status` are what was seen.
    func isStill(_ bytes: [UInt8], _ status: FileStatus) -> Bool {
        Self.witness(of: bytes, status) & (.max >> 8) == witnessAndVerdict >> 8
    }

    /// Whether nobody has overwritten, read or replaced the entry since `stamp`, which is older than what was seen of
    /// it; false also where that can't be told by `status` alone.
    ///
    /// All of that raises the change time, as the file system that gave the stamp dates it, but for accesses that the
    /// kernel notes by itself: those raise the access time. By the clock's leave: ask it after `status` was taken.
    func isUntouched(since stamp: Timestamp, _ status: FileStatus) -> Bool {
        status.changed < stamp && status.accessed <= lastUse
            && UInt32(truncatingIfNeeded: status.identity.inode) == inode
    }

    /// What changes when anybody overwrites, reads or replaces the entry: a hash, with the process's random seed,
    /// of the file's identity, its access time and the bytes of the record.
    ///
    /// 56 bits of it are kept: that a change goes unnoticed has a chance of one in 10^17, each time that an entry
    /// changes between the scan and its removal.
    static func witness(of bytes: [UInt8], _ status: FileStatus) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(status.identity.device)
        hasher.combine(status.identity.inode)
        hasher.combine(status.accessed.nanoseconds)
        unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }
}

extension SeenEntry {
    /// What a sweep at `now` makes of an entry by itself.
    init(
        _ key: Digest,
        _ record: Record?,
        _ bytes: [UInt8],
        _ status: FileStatus,
        limits: SweepLimits,
        now: Timestamp
    ) {
        let lastUse = record?.lastUse(accessed: status.accessed, now: now) ?? now
        self.init(
            key: key,
            lastUse: lastUse,
            verdict: Self.verdict(record, status.accessed, lastUse, limits, now),
            witness: Self.witness(of: bytes, status),
            allocatedSize: AllocatedSize(bytes: status.allocatedSize),
            inode: UInt32(truncatingIfNeeded: status.identity.inode)
        )
    }

    private static func verdict(
        _ record: Record?,
        _ accessed: Timestamp,
        _ lastUse: Timestamp,
        _ limits: SweepLimits,
        _ now: Timestamp
    ) -> Verdict {
        guard let record else { return .corrupt }
        if record.freshness(at: now, accessed: accessed) == .expired { return .expired }
        if let age = limits.maximumAge, now - record.created > age { return .age }
        if let idle = limits.maximumIdleTime, now - lastUse > idle { return .idle }
        return .none
    }
}

/// A list that grows without moving what it holds, in pieces of 4096 elements.
///
/// An array that doubles has up to half of its room empty, and both the old and the new room while it moves.
struct Segments<Element> {
    private static var shift: Int { 12 }
    private var segments: [[Element]] = []
    private(set) var count = 0

    mutating func append(_ element: Element) {
        if count & (1 << Self.shift - 1) == 0 {
            segments.append([])
            segments[segments.count - 1].reserveCapacity(1 << Self.shift)
        }
        segments[segments.count - 1].append(element)
        count += 1
    }

    subscript(index: Int) -> Element {
        get { segments[index >> Self.shift][index & (1 << Self.shift - 1)] }
        _modify { yield &segments[index >> Self.shift][index & (1 << Self.shift - 1)] }
    }
}
