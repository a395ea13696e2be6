// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a verification has found out about each object: a checksum and the length of its bytes.
///
/// It takes 21 to 43 bytes per object from a few hundred objects per shard on. 10 million objects take 270 MB (16.8
/// million slots), a billion 35 GB: verify a sample of so many. Two objects with the same fingerprint, of 64 bits with a
/// random seed, count as one. Among 10 million objects that happens in one of 400,000 verifications. It can't cause a
/// sound object to be reported, because an object that differs from an entry is read again.
struct VerifiedObjects: Sendable {
    /// One table for each shard, with a separate lock, for which threads seldom contend.
    private let tables: [Locked<FingerprintTable<UInt64>>.Box]

    init() {
        let seed = SIMD4<UInt64>.random(in: 0 ... .max)
        tables = (0..<StoreLayout.shardCount).map { _ in
            Locked.Box(FingerprintTable(vacant: Self.nothing, seed: seed))
        }
    }

    // The state of an object is in the lower 63 bits; the highest bit says whether an entry names the object. The state
    // of a sound object is its checksum and its length modulo 1 GiB.
    private static let referenced: UInt64 = 1 << 63
    private static let corrupt: UInt64 = 1 << 62
    private static let unread = corrupt | 1
    private static let deleted = corrupt | 2
    private static let nothing = corrupt | 3

    private static func mark(of content: Content) -> UInt64 {
        UInt64(content.checksum) << 30 | UInt64(truncatingIfNeeded: content.length) & (1 << 30 - 1)
    }

    /// What is known about an object that an entry names.
    enum Knowledge {
        /// The object was not read, or is missing.
        case nothing
        /// Reading the object was deferred until an entry states its length.
        case unread
        /// The object's bytes don't have the digest that is its name.
        case corrupt
        /// The object matches the entry.
        case agrees
        /// The object differs from the entry.
        case differs
    }

    /// Records an object that was read; `content` describes its bytes, or is nil if they don't have the digest that is
    /// its name.
    ///
    /// - Returns: false if the same was recorded already.
    @discardableResult
    func note(_ digest: Digest, _ content: Content?) -> Bool {
        let sound = content.flatMap { $0.digest == digest ? Self.mark(of: $0) : nil }
        return note(digest, sound ?? Self.corrupt)
    }

    /// Records that reading an object was deferred.
    func noteUnread(_ digest: Digest) {
        _ = note(digest, Self.unread)
    }

    /// Records that an object was deleted.
    func noteDeleted(_ digest: Digest) {
        _ = note(digest, Self.deleted)
    }

    private func note(_ digest: Digest, _ mark: UInt64) -> Bool {
        tables[digest.shard].value.withLock { table in
            let old = table[digest]
            let new = mark | old & Self.referenced
            table[digest] = new
            return new != old
        }
    }

    /// Compares the content that an entry states with the object that was read, and records that an entry names the
    /// object.
    func compare(_ content: Content) -> Knowledge {
        let mark = tables[content.digest.shard].value.withLock { table in
            guard let mark = table.value(of: content.digest) else { return Self.nothing }
            table[content.digest] = mark | Self.referenced
            return mark & ~Self.referenced
        }
        switch mark {
        case Self.unread: return .unread
        case Self.corrupt: return .corrupt
        case Self.deleted, Self.nothing: return .nothing
        default: return mark == Self.mark(of: content) ? .agrees : .differs
        }
    }

    /// The number of objects, sound or deferred, for which no entry was found that names them.
    var unreferenced: Int {
        tables.reduce(0) { sum, table in
            sum
                + table.value.withLock { table in
                    table.values.count { $0 & (Self.referenced | Self.corrupt) == 0 || $0 == Self.unread }
                }
        }
    }
}
