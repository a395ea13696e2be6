// SPDX-License-Identifier: Apache-2.0

import Platform

/// The state of a pack: a word in the table of the index.
///
/// The sequence number rises each time the pack's row is used again.
struct PackState: Equatable, Sendable {
    enum Use: UInt64 {
        /// No word of the index names a record of the pack, and its file may be written from the start.
        case free = 0
        /// A process appends records; it holds an exclusive lock on the file.
        case open = 1
        /// No process appends records anymore.
        case full = 2
        /// A process moves or evicts its records.
        case reclaimed = 3
    }

    let rawValue: UInt64

    init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    init(_ use: Use, sequence: UInt64) {
        rawValue = sequence << 8 | use.rawValue
    }

    /// What the row is used for; nil for an unknown value.
    var use: Use? { Use(rawValue: rawValue & 0xff) }
    var sequence: UInt64 { rawValue >> 8 }
}

/// The index of packs: a file of words that all processes map.
///
/// ```
/// word 0        magic
/// word 1        version
/// word 2        number of buckets
/// word 3        number of rows of the table of packs
/// from word 16  the state of the pack in each row (PackState)
///      …        buckets of 16 words (PackWord); the last word of each is unused
/// ```
///
/// All blocks of the file are allocated before any process maps it, and it is never truncated. It needs a file system with
/// unnamed files on which a store into an allocated block needs no space (``SharedMapping``).
final class PackIndex: Sendable {
    let bucketCount: Int
    /// The number of rows of the table of packs.
    let packCount: Int

    private let mapping: MappedFile
    private let firstBucket: Int

    /// "dcpacks1", little-endian.
    private static let magic: UInt64 = 0x3173_6b63_6170_6364
    private static let version: UInt64 = 1
    private static let table = 16

    private init(_ mapping: MappedFile, bucketCount: Int, packCount: Int) {
        self.mapping = mapping
        self.bucketCount = bucketCount
        self.packCount = packCount
        firstBucket = Self.firstBucket(packCount)
    }

    private static func firstBucket(_ packCount: Int) -> Int {
        (table + packCount + PackLayout.bucketStride - 1) / PackLayout.bucketStride * PackLayout.bucketStride
    }

    private static func wordCount(_ bucketCount: Int, _ packCount: Int) -> Int {
        firstBucket(packCount) + bucketCount * PackLayout.bucketStride
    }

    /// Maps the index in `folder`; creates one of this size if there is none.
    ///
    /// - Parameters:
    ///   - bucketCount: the number of buckets; 6 keys for each leave one key in 10,000 without a word.
    ///   - packCount: the number of packs, at most ``PackLayout/mostPacks``.
    /// - Throws: ``Errno/notSupported`` if the file system has no unnamed files; ``Errno/badMessage`` for a file that is not
    ///   an index.
    static func open(in folder: borrowing Directory, bucketCount: Int, packCount: Int) throws(Errno)
        -> PackIndex
    {
        precondition(bucketCount > 0 && packCount > 0 && packCount <= PackLayout.mostPacks, "invalid size")
        do throws(Errno) {
            return try PackIndex(mapping: folder.open(PackLayout.index, .readWrite))
        } catch {
            guard error == .noEntry else { throw error }
        }
        guard let file = try folder.openUnnamed(mode: FileMode.file) else { throw .notSupported }
        let count = wordCount(bucketCount, packCount)
        try file.allocate(count * 8)
        let mapping = try MappedFile(mapping: file, wordCount: count, isWritable: true)
        mapping.words.store(magic, at: 0)
        mapping.words.store(version, at: 1)
        mapping.words.store(UInt64(bucketCount), at: 2)
        mapping.words.store(UInt64(packCount), at: 3)
        do throws(Errno) {
            try folder.link(file, as: PackLayout.index)
        } catch {
            // If the name exists, another process was first.
            if error != .exists { throw error }
        }
        return try PackIndex(mapping: folder.open(PackLayout.index, .readWrite))
    }

    /// Maps an existing file.
    private convenience init(mapping file: borrowing FileDescriptor) throws(Errno) {
        let status = try file.status()
        // A file with holes is a copy, or was truncated: a store could kill this process.
        guard status.size % 8 == 0, status.size >= Self.table * 8, status.allocatedSize >= status.size else {
            throw .badMessage
        }
        let count = Int(status.size / 8)
        let mapping = try MappedFile(mapping: file, wordCount: count, isWritable: true)
        let words = mapping.words
        let (buckets, packs) = (words.load(2), words.load(3))
        guard words.load(0) == Self.magic, words.load(1) == Self.version, buckets > 0, buckets <= count,
            packs > 0, packs <= PackLayout.mostPacks, Self.wordCount(Int(buckets), Int(packs)) == count
        else { throw .badMessage }
        self.init(mapping, bucketCount: Int(buckets), packCount: Int(packs))
    }

    // MARK: Words

    /// Returns the position of the first word of the key's bucket.
    func bucket(of key: Digest) -> Int {
        firstBucket + Int(key.word(1).multipliedFullWidth(by: UInt64(bucketCount)).high)
            * PackLayout.bucketStride
    }

    func word(at position: Int) -> PackWord { PackWord(rawValue: mapping.words.load(position)) }

    /// Replaces the word if it is still `old`; returns false if it is not.
    func replace(_ old: PackWord, by new: PackWord, at position: Int) -> Bool {
        mapping.words.replace(old.rawValue, by: new.rawValue, at: position)
    }

    /// Replaces the word at `position` as long as it names the same record; returns false if it names another one or none.
    func replaceRecord(_ old: PackWord, by new: PackWord, at position: Int) -> Bool {
        var present = word(at: position)
        while present.identity == old.identity {
            if replace(present, by: new, at: position) { return true }
            present = word(at: position)
        }
        return false
    }

    // MARK: Packs

    func state(ofPack row: Int) -> PackState { PackState(rawValue: mapping.words.load(Self.table + row)) }

    /// Replaces the state if it is still `old`; returns false if it is not.
    func replace(_ old: PackState, by new: PackState, ofPack row: Int) -> Bool {
        mapping.words.replace(old.rawValue, by: new.rawValue, at: Self.table + row)
    }

    /// Returns whether the word's pack still has the records that it had when the word was written.
    func isCurrent(_ word: PackWord) -> Bool {
        guard word != .empty, word.pack < packCount else { return false }
        let state = state(ofPack: word.pack)
        guard let use = state.use, use != .free else { return false }
        return state.sequence & 15 == word.sequence
    }

    /// Returns whether the word's pack is not being reclaimed, so that a word published before this call is kept.
    func accepts(_ word: PackWord) -> Bool {
        isCurrent(word) && state(ofPack: word.pack).use != .reclaimed
    }
}
