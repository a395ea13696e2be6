// SPDX-License-Identifier: Apache-2.0

import Platform

/// What the bytes of each object that was read really are: 21 to 43 bytes an object from a few hundred objects a shard
/// on.
///
/// 10 million objects take 270 MB (16.8 million places), a billion 35 GB: that many are verified by sample. Two
/// objects of one fingerprint, of 64 bits with a random seed, count as one; among 10 million that happens once in
/// 400,000 verifications. It can't condemn anything: what differs here is read again.
struct VerifiedObjects: Sendable {
    /// One for each shard, each with a lock of its own, which threads hardly ever want at the same time.
    private let tables: [Locked<FingerprintTable<UInt64>>.Box]

    init() {
        let seed = SIMD4<UInt64>.random(in: 0 ... .max)
        tables = (0..<StoreLayout.shardCount).map { _ in
            Locked.Box(FingerprintTable(vacant: Self.nothing, seed: seed))
        }
    }

    // What is known of an object, in 63 bits, and above them whether an entry names it. Of one that is sound its checksum
    // and its length, of which lengths that differ by whole GiB are one.
    private static let referenced: UInt64 = 1 << 63
    private static let corrupt: UInt64 = 1 << 62
    private static let unread = corrupt | 1
    private static let deleted = corrupt | 2
    private static let nothing = corrupt | 3

    private static func mark(of content: Content) -> UInt64 {
        UInt64(content.checksum) << 30 | UInt64(truncatingIfNeeded: content.length) & (1 << 30 - 1)
    }

    /// What is known of an object that an entry names.
    enum Knowledge {
        /// It was not read, or is gone.
        case nothing
        /// It was put aside, to be read when its length is known.
        case unread
        /// Its bytes are not those of its name.
        case corrupt
        /// It is as the entry says.
        case agrees
        /// It is not as the entry says.
        case differs
    }

    /// Takes down an object that was read; `content` is what its bytes are, nil that they are not those of its name.
    ///
    /// False: that was known.
    @discardableResult
    func note(_ digest: Digest, _ content: Content?) -> Bool {
        let sound = content.flatMap { $0.digest == digest ? Self.mark(of: $0) : nil }
        return note(digest, sound ?? Self.corrupt)
    }

    /// Takes down an object that was put aside.
    func noteUnread(_ digest: Digest) {
        _ = note(digest, Self.unread)
    }

    /// Takes down that an object was deleted.
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

    /// Holds what an entry says against what was read, and takes down that an entry names it.
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

    /// Objects that no entry was found to name, sound ones or put aside.
    var unreferenced: Int {
        tables.reduce(0) { sum, table in
            sum
                + table.value.withLock { table in
                    table.values.count { $0 & (Self.referenced | Self.corrupt) == 0 || $0 == Self.unread }
                }
        }
    }
}
