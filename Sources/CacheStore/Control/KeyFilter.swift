// SPDX-License-Identifier: Apache-2.0

import Platform

/// Which keys can have an entry, told from the control file without a system call: a Bloom filter.
///
/// A writer sets the bits of its key before it publishes the entry, under the entry's stripe, in the control
/// file that it counts itself in; they are never cleared. Whoever finds one of them missing knows that the key
/// has no entry, provided that
///
/// - the file is *ready*: then every writer uses it, and whoever published without it had done so before
///   (``Control`` keeps all out for a moment before it makes a file ready). A writer whose put has returned
///   can't have used an older one: that was marked as superseded before the new one had its place, and a
///   writer who finds it so looks for the new one, under its stripe. And it can't have used a later one, as
///   then this one would not be ready any more;
/// - the filter is *complete*: made with the directory, before anybody could write, or by a sweep that has
///   listed all entries from after the moment when the file was ready. What was published before that is
///   listed, unless it was removed; what was published since has its bits.
///
/// So a get that begins after a put has returned finds the bits of its key or a filter that does not count, and
/// a miss told from here is that of the moment when the state was looked at.
///
/// It is complete only for one boot of the machine and one inode (``ControlMaking/filterSeal(of:birthTime:)``): after a power
/// cut the medium may have an entry without the bits, and a copy of the file knows nothing of what was put
/// after it. The next sweep completes it again. (The inode is told from a later one of the same number by its
/// birth. What nothing tells of is an older copy of the contents that was written over the file in place: keys that
/// were put after it are missed until a sweep has listed all.)
///
/// 2²³ bits in blocks of one cache line, four bits a key: of 100,000 keys 1 in 100,000 is asked for in vain on
/// disk, of a million 1 in 40, of five million 2 in 3. Keys that are gone count, too.
struct KeyFilter: Sendable {
    let words: MappedWords

    init(in words: MappedWords) {
        self.words = words
    }

    /// Bits of a key.
    private static let bitCount = 4
    /// A cache line of 64 bytes.
    private static let blockWords = 8

    /// Notes that `key` may have an entry.
    ///
    /// Four loads, and an atomic step for each bit that is not set yet.
    func insert(_ key: Digest) {
        let (block, bits) = Self.place(of: key)
        for number in 0..<Self.bitCount {
            let (word, mask) = Self.bit(number, of: bits)
            if words.load(block + word) & mask == 0 { words.setBits(mask, at: block + word) }
        }
    }

    /// Has the cache line fetched in which all bits of `key` are.
    func prefetch(_ key: Digest) {
        words.prefetch(Self.place(of: key).block)
    }

    /// False: it has none, if this filter counts.
    func mayContain(_ key: Digest) -> Bool {
        let (block, bits) = Self.place(of: key)
        for number in 0..<Self.bitCount {
            let (word, mask) = Self.bit(number, of: bits)
            if words.load(block + word) & mask == 0 { return false }
        }
        return true
    }

    /// The place of the key's block in the file, and 36 bits that choose four of its bits: from bytes 8 to 15
    /// of the digest, as its first ones choose the generation.
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
