// SPDX-License-Identifier: Apache-2.0

import Platform

/// The actual bytes of each object that was read, as a checksum and a length.
///
/// It takes 21 to 43 bytes per object from a few hundred objects per shard on. 10 million objects take 270 MB (16.8 million
/// slots), a billion 35 GB: those are verified by sample. Two objects with the same fingerprint, of 64 bits with a random
/// seed, count as one; among 10 million that happens once in 400,000 verifications. It can't condemn a sound object: on a
/// difference the object is read again.
struct VerifiedObjects: Sendable {
    /// One for each shard, each with its own lock, which threads seldom contend for.
    private let tables: [Locked<FingerprintTable<UInt64>>.Box]

    init() {
        let seed = SIMD4<UInt64>.random(in: 0 ... .max)
        tables = (0..<StoreLayout.shardCount).map { _ in
            Locked.Box(FingerprintTable(vacant: Self.nothing, seed: seed))
        }
    }

    // The state of an object in 63 bits, and above them whether an entry names it. For a sound object it is its checksum and
    // its length modulo 1 GiB.
    private static let referenced: UInt64 = 1 << 63
    private static let corrupt: UInt64 = 1 << 62
    private static let unread = corrupt | 1
    private static let deleted = corrupt | 2
    private static let nothing = corrupt | 3

    private static func mark(of content: Content) -> UInt64 {
        UInt64(content.checksum) << 30 | UInt64(truncatingIfNeeded: content.length) & (1 << 30 - 1)
    }

    /// The state of an object that an entry names.
    enum Knowledge {
        /// It was not read, or is missing.
        case nothing
        /// It was deferred, to be read when its length is known.
        case unread
        /// Its bytes don't have the digest of its name.
        case corrupt
        /// It matches the entry.
        case agrees
        /// It differs from the entry.
        case differs
    }

    /// Records an object that was read; `content` describes its bytes, or is nil if they don't have the digest of its name.
    ///
    /// - Returns: false if that was recorded already.
    @discardableResult
    func note(_ digest: Digest, _ content: Content?) -> Bool {
        let sound = content.flatMap { $0.digest == digest ? Self.mark(of: $0) : nil }
        return note(digest, sound ?? Self.corrupt)
    }

    /// Records an object that was deferred.
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

    /// Compares an entry with the object that was read, and records that an entry names it.
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

    /// The number of objects that no entry was found to name, sound or deferred.
    var unreferenced: Int {
        tables.reduce(0) { sum, table in
            sum
                + table.value.withLock { table in
                    table.values.count { $0 & (Self.referenced | Self.corrupt) == 0 || $0 == Self.unread }
                }
        }
    }
}
