// SPDX-License-Identifier: Apache-2.0

import Platform

/// A word of the index of packs: where the record of a key is, and when the value was last used.
///
/// ```
/// bits 52…63  tag: the first 12 bits of the third word of the key's digest
/// bits 36…51  pack: the row in the table of packs
/// bits 22…35  offset of the record in the pack, in units of 64 bytes; never 0
/// bits  6…21  minute of the last use, modulo 65,536 (45 days)
/// bits  2…5   the lowest bits of the pack's sequence number
/// bits  0…1   the number of uses since the record was written or moved, up to 3
/// ```
///
/// The word 0 is empty. A use changes only the minute and the number of uses. All other bits together identify a record:
/// as long as they stay the same, so does the value.
struct PackWord: Equatable, Sendable {
    let rawValue: UInt64

    static let empty = PackWord(rawValue: 0)

    init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    init(of key: Digest, pack: Int, sequence: UInt64, offset: Int, minute: UInt16) {
        precondition(
            pack < PackLayout.mostPacks && offset % PackLayout.unit == 0,
            "not the place of a record"
        )
        let place = UInt64(pack) << 36 | UInt64(offset / PackLayout.unit) << 22
        rawValue = Self.tag(of: key) << 52 | place | UInt64(minute) << 6 | (sequence & 15) << 2
    }

    /// The tag in the words of a key.
    static func tag(of key: Digest) -> UInt64 { key.word(2) >> 52 }

    var tag: UInt64 { rawValue >> 52 }
    var pack: Int { Int(rawValue >> 36 & 0xffff) }
    /// The offset of the record in bytes.
    var offset: Int { Int(rawValue >> 22 & 0x3fff) * PackLayout.unit }
    var minute: UInt16 { UInt16(truncatingIfNeeded: rawValue >> 6) }
    /// The lowest four bits of the pack's sequence number.
    var sequence: UInt64 { rawValue >> 2 & 15 }
    var uses: UInt64 { rawValue & 3 }

    /// The bits that identify the record; 0 for an empty word.
    var identity: UInt64 { rawValue & ~Self.usage }

    private static let usage: UInt64 = 0xffff << 6 | 3

    /// Returns the word after a use at `minute`; the same word if its last use was in that minute and it counts three uses.
    func used(at minute: UInt16) -> PackWord {
        PackWord(rawValue: identity | UInt64(minute) << 6 | min(uses + 1, 3))
    }
}

/// The layout of packs and of their index.
enum PackLayout {
    /// The size of a pack in bytes.
    static let packSize = 1 << 20
    /// The unit of offsets; each record starts at a multiple.
    static let unit = 64
    /// The greatest number of rows of the table of packs; a process may have 65,530 mappings by default (proc(5),
    /// `max_map_count`).
    static let mostPacks = 1 << 15
    /// The longest value that a pack stores, in bytes.
    static let longestValue = 32 << 10

    /// The size of a new index: 2 MiB for about 100,000 keys, and up to 64 MiB of packs.
    static let usualBuckets = 1 << 14
    static let usualPacks = 64

    /// The words of a bucket, two cache lines, of which the last is unused.
    static let bucketStride = 16
    static let bucketCapacity = 15

    /// The name of the folder of the packs and their index.
    static let folder: RelativePath = "packs"
    static let index: RelativePath = "index"

    /// The name of the pack in the given row.
    static func name(ofPack row: Int) -> RelativePath { RelativePath("pack-\(row)") }

    /// Returns the offset after a record of `size` bytes that starts at `offset`.
    static func end(ofRecord size: Int, at offset: Int) -> Int {
        (offset + size + unit - 1) / unit * unit
    }
}
