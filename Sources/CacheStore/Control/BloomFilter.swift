// SPDX-License-Identifier: Apache-2.0

import Platform

/// A Bloom filter in the control file, which shows without a system call which keys can have an entry.
///
/// A writer sets the bits of its key before it publishes the entry, under the entry's stripe, in the control file in which
/// it is registered as a writer. Bits are never cleared. If one of the bits is 0, the key has no entry, provided that
///
/// - the file is *ready*: then every writer uses it, and every writer that did not use it has published (before ``Control``
///   makes a file ready, it holds each entry stripe exclusively once). A put that has returned can't have used an older
///   file: that file was marked as superseded before the new one was in place, and a writer that finds its file superseded
///   looks for the new one while it holds the stripe. Nor can the put have used a later file, because then this file would
///   no longer be ready;
/// - the filter is *complete*: it was created with the directory, before any process could write, or a sweep that began
///   after the file was ready has listed all entries. The sweep lists every entry that was published before it began,
///   unless the entry was removed; an entry that was published since then has its bits set.
///
/// So a get that begins after a put has returned finds the bits of its key or an invalid filter. A miss that the filter
/// reports is correct for the moment when the state was loaded.
///
/// The filter is complete only for one boot of the machine and one inode (``ControlMaking/filterSeal(of:birthTime:)``):
/// after a power cut the medium may have an entry without its bits, and a copy of the file lacks all keys that were put
/// after it was copied. The next sweep completes it again. (The birth time distinguishes the inode from a later one with
/// the same number. An older copy of the contents that was written over the file in place is not detected: keys that were
/// put after the copy are missed until a sweep has listed all entries.)
///
/// The filter has 2²³ bits in blocks of one cache line, and sets four bits per key. The false positive rate is 1 in 100,000
/// with 100,000 keys, 1 in 40 with a million, and 2 in 3 with five million. Deleted keys count as well.
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
    /// Four loads, and an atomic operation for each bit that is not set yet.
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
    /// Both come from bytes 8 to 15 of the digest, because its first bytes select the generation.
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
