// SPDX-License-Identifier: Apache-2.0

import Platform

/// A Bloom filter in the control file: which keys can have an entry, without a system call.
///
/// A writer sets the bits of its key before it publishes the entry, under the entry's stripe, in the control file in which
/// it is registered as a writer. Bits are never cleared. If one of the bits is 0, the key has no entry, provided that
///
/// - the file is *ready*: then every writer uses it, and every writer without it had published before (``Control`` keeps all
///   out for a moment before it makes a file ready). A writer whose put has returned can't have used an older file: that one
///   was marked as superseded before the new one was in place, and a writer that finds it superseded looks for the new one,
///   under its stripe. Nor can it have used a later file, as then this one would no longer be ready;
/// - the filter is *complete*: made with the directory, before any process could write, or by a sweep that began after the
///   file was ready and has listed all entries. An entry that was published before is listed, unless it was removed; an
///   entry that was published since has its bits set.
///
/// So a get that begins after a put has returned finds the bits of its key or an invalid filter, and a miss that the filter
/// reports is true for the moment when the state was loaded.
///
/// The filter is complete only for one boot of the machine and one inode (``ControlMaking/filterSeal(of:birthTime:)``):
/// after a power cut the medium may have an entry without the bits, and a copy of the file lacks all keys that were put
/// after it was made. The next sweep completes it again. (The birth time distinguishes the inode from a later one with the
/// same number. An older copy of the contents that was written over the file in place is not detected: keys that were put
/// after it are missed until a sweep has listed all entries.)
///
/// 2²³ bits in blocks of one cache line, four bits a key. The false positive rate is 1 in 100,000 with 100,000 keys, 1 in 40
/// with a million, 2 in 3 with five million. Deleted keys count, too.
struct BloomFilter: Sendable {
    let words: MappedWords

    init(in words: MappedWords) {
        self.words = words
    }

    /// The number of bits of a key.
    private static let bitCount = 4
    /// A block is a cache line of 64 bytes.
    private static let blockWords = 8

    /// Records that `key` may have an entry.
    ///
    /// Four loads, and an atomic step for each bit that is not set yet.
    func insert(_ key: Digest) {
        let (block, bits) = Self.place(of: key)
        for number in 0..<Self.bitCount {
            let (word, mask) = Self.bit(number, of: bits)
            if words.load(block + word) & mask == 0 { words.setBits(mask, at: block + word) }
        }
    }

    /// Prefetches the cache line that contains all bits of `key`.
    func prefetch(_ key: Digest) {
        words.prefetch(Self.place(of: key).block)
    }

    /// Returns false if `key` has no entry, provided that the filter is valid.
    func mayContain(_ key: Digest) -> Bool {
        let (block, bits) = Self.place(of: key)
        for number in 0..<Self.bitCount {
            let (word, mask) = Self.bit(number, of: bits)
            if words.load(block + word) & mask == 0 { return false }
        }
        return true
    }

    /// Returns the place of the key's block in the file, and 36 bits that choose four of its bits.
    ///
    /// They come from bytes 8 to 15 of the digest, as its first bytes choose the generation.
    private static func place(of key: Digest) -> (block: Int, bits: UInt64) {
        let bits = key.word(1)
        let block = Int(bits >> 36) & (ControlLayout.filterWords / blockWords - 1)
        return (ControlLayout.filter + block * blockWords, bits)
    }

    private static func bit(_ number: Int, of bits: UInt64) -> (word: Int, mask: UInt64) {
        let position = bits >> UInt64(9 * number)
        return (Int(position & 7), 1 << (position >> 3 & 63))
    }
}
