// SPDX-License-Identifier: Apache-2.0

import Platform

/// What the bytes of each object that was read really are, as fingerprints: 16 bytes a place, and at least half of
/// the places in use from a few hundred objects a shard on, so at most 43 bytes an object while a table grows.
///
/// 10 million objects take 270 MB (16.8 million places), a billion 27 GB: that many are verified by sample. Two
/// objects of one fingerprint, of 64 bits with a random seed, count as one; among 10 million that happens once in
/// 400,000 verifications. It can't condemn anything: what differs here is read again.
struct VerifiedObjects: Sendable {
    /// One for each shard, each with a lock of its own, which threads hardly ever want at the same time.
    private let tables: [Locked<Table>.Box]
    /// Random, so that nobody can choose digests that collide.
    private let seed = SIMD4<UInt64>.random(in: 0 ... .max)

    init() {
        tables = (0..<256).map { _ in Locked.Box(Table()) }
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
        insert(digest, content?.digest == digest ? content.map(Table.mark) ?? 0 : Table.corrupt)
    }

    /// Takes down an object that was put aside.
    func noteUnread(_ digest: Digest) {
        _ = insert(digest, Table.unread)
    }

    /// Takes down that an object was deleted.
    func noteDeleted(_ digest: Digest) {
        _ = insert(digest, Table.deleted)
    }

    private func insert(_ digest: Digest, _ mark: UInt64) -> Bool {
        let fingerprint = fingerprint(of: digest)
        return tables[Int(digest.byte(0))].value.withLock { $0.insert(fingerprint, mark) }
    }

    /// Holds what an entry says against what was read, and takes down that an entry names it.
    func compare(_ content: Content) -> Knowledge {
        let fingerprint = fingerprint(of: content.digest)
        let mark = tables[Int(content.digest.byte(0))].value.withLock { $0.refer(to: fingerprint) }
        guard let mark else { return .nothing }
        switch mark & ~Table.referenced {
        case Table.unread: return .unread
        case Table.corrupt: return .corrupt
        case Table.deleted: return .nothing
        default: break
        }
        return mark & ~Table.referenced == Table.mark(of: content) ? .agrees : .differs
    }

    /// Objects that no entry was found to name, sound ones or put aside.
    var unreferenced: Int {
        tables.reduce(0) { sum, table in sum + table.value.withLock { $0.unreferenced } }
    }

    /// Products of seeded words, both halves of each: what differs anywhere in the digest differs here.
    private func fingerprint(of digest: Digest) -> UInt64 {
        let first = (digest.word(0) ^ seed[0]).multipliedFullWidth(by: digest.word(1) ^ seed[1])
        let second = (digest.word(2) ^ seed[2]).multipliedFullWidth(by: digest.word(3) ^ seed[3])
        // 0 stands for a place that is free.
        return max(1, first.high ^ first.low ^ second.high ^ second.low)
    }

    /// A hash table with open addressing, at most three quarters of it in use.
    private struct Table {
        static let referenced: UInt64 = 1 << 63
        static let corrupt: UInt64 = 1 << 62
        static let unread = corrupt | 1
        static let deleted = corrupt | 2

        private var fingerprints = [UInt64](repeating: 0, count: 64)
        private var marks = [UInt64](repeating: 0, count: 64)
        private var count = 0

        /// Checksum and length, of which lengths that differ by whole GiB are one.
        static func mark(of content: Content) -> UInt64 {
            UInt64(content.checksum) << 30 | UInt64(truncatingIfNeeded: content.length) & (1 << 30 - 1)
        }

        /// False: it was there.
        mutating func insert(_ fingerprint: UInt64, _ mark: UInt64) -> Bool {
            if (count + 1) * 4 > fingerprints.count * 3 { grow() }
            let place = place(of: fingerprint)
            if fingerprints[place] == 0 { count += 1 }
            fingerprints[place] = fingerprint
            let old = marks[place]
            marks[place] = mark | old & Self.referenced
            return marks[place] != old
        }

        mutating func refer(to fingerprint: UInt64) -> UInt64? {
            let place = place(of: fingerprint)
            if fingerprints[place] == 0 { return nil }
            marks[place] |= Self.referenced
            return marks[place]
        }

        var unreferenced: Int {
            fingerprints.indices.count { index in
                fingerprints[index] != 0
                    && (marks[index] & (Self.referenced | Self.corrupt) == 0 || marks[index] == Self.unread)
            }
        }

        private func place(of fingerprint: UInt64) -> Int {
            var place = Int(truncatingIfNeeded: fingerprint) & (fingerprints.count - 1)
            while fingerprints[place] != 0, fingerprints[place] != fingerprint {
                place = (place + 1) & (fingerprints.count - 1)
            }
            return place
        }

        private mutating func grow() {
            let old = (fingerprints, marks)
            fingerprints = [UInt64](repeating: 0, count: old.0.count * 2)
            marks = [UInt64](repeating: 0, count: old.0.count * 2)
            for index in old.0.indices where old.0[index] != 0 {
                let place = place(of: old.0[index])
                fingerprints[place] = old.0[index]
                marks[place] = old.1[index]
            }
        }
    }
}
