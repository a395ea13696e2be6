// SPDX-License-Identifier: Apache-2.0

import Platform

/// A size on disk in 32 bits: blocks of 512 bytes below 1 TiB, whole MiB from there on, rounded up.
struct AllocatedSize: Sendable, Equatable {
    let code: UInt32

    private static let isLarge: UInt32 = 1 << 31
    private static let block: Int64 = 512
    private static let largeBlock: Int64 = 1 << 20

    init(code: UInt32) {
        self.code = code
    }

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

/// An entry as a sweep saw it; 88 bytes.
///
/// It contains no string and no reference to a class instance.
struct SeenEntry: Sendable, Equatable {
    let key: Digest
    /// The digest of the value; zeros if the entry is corrupt.
    let content: Digest
    let lastUse: Timestamp
    /// The size on disk of the entry's own file.
    let allocatedSize: AllocatedSize
    /// The lower half of the entry's inode number.
    let inode: UInt32
    /// The result of ``witness(of:_:)``.
    let witness: UInt32
    /// Why the entry must be deleted regardless of the limits on all entries together; nil if it need not be.
    var verdict: RemovalReason?
    /// Whether the entry may be evicted.
    var isSelected = true

    /// The entry's position in the order of eviction, which is unique.
    var order: EvictionOrder { EvictionOrder(lastUse: lastUse, tie: key.word(0)) }

    /// Returns whether the record's bytes and `status` are those that the sweep saw.
    func isStill(_ bytes: [UInt8], _ status: FileStatus) -> Bool {
        Self.witness(of: bytes, status) == witness
    }

    /// Returns a value that changes if a process overwrites, reads or replaces the entry.
    ///
    /// It is a checksum of the inode number, the access time and the bytes of the record, and is the same in every
    /// process.
    ///
    /// If an entry changes between the scan and its eviction and its change time can't show that, the change is missed
    /// with a probability of one in 4 billion. Then the entry is evicted too early, which a cache may do at any time. The
    /// object that the entry named before is deleted only if no put has touched it, and the object that it names now
    /// becomes an orphan.
    static func witness(of bytes: [UInt8], _ status: FileStatus) -> UInt32 {
        let words: InlineArray<2, UInt64> = [
            status.identity.inode, UInt64(bitPattern: status.accessed.nanoseconds),
        ]
        var checksum = CRC32C()
        checksum.update(unsafe words.span.bytes)
        checksum.update(bytes.span)
        return checksum.value
    }
}

/// The order of eviction: the least recently used entry comes first.
///
/// Entries that were used at the same time have an arbitrary order, which is the same in every sweep.
struct EvictionOrder: Comparable, Sendable {
    let lastUse: Timestamp
    let tie: UInt64

    static let last = EvictionOrder(lastUse: .distantFuture, tie: .max)

    static func < (left: EvictionOrder, right: EvictionOrder) -> Bool {
        left.lastUse == right.lastUse ? left.tie < right.tie : left.lastUse < right.lastUse
    }
}

extension SeenEntry {
    /// Creates the state of an entry as a sweep at `now` judges it; `record` is nil if the record is damaged or missing.
    ///
    /// The parameters are borrowed, because copying a record counts references.
    init(
        _ key: Digest,
        _ record: __shared Record?,
        _ bytes: __shared [UInt8],
        _ status: __shared FileStatus,
        limits: __shared CacheLimits,
        now: Timestamp
    ) {
        let lastUse = record?.lastUse(accessed: status.accessed, now: now) ?? now
        var verdict: RemovalReason?
        if record == nil {
            verdict = .corrupt
        } else if record?.isOfFuture(at: now) ?? false {
            // If the clock was set back for a while, this may apply to all entries, so they stay. They are the first to
            // be evicted to make room.
            verdict = nil
        } else if record?.freshness(at: now, accessed: status.accessed) == .expired {
            verdict = .expired
        } else if let age = limits.maximumAge, let created = record?.created, now - created > age {
            verdict = .age
        } else if let idle = limits.maximumIdleTime, now - lastUse > idle {
            verdict = .idle
        }
        self.init(
            key: key,
            content: record?.content.digest ?? Digest(bytes: InlineArray(repeating: 0)),
            lastUse: lastUse,
            allocatedSize: AllocatedSize(bytes: status.allocatedSize),
            inode: UInt32(truncatingIfNeeded: status.identity.inode),
            witness: Self.witness(of: bytes, status),
            verdict: verdict
        )
    }
}
