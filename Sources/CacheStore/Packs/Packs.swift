// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform
import Synchronization

/// Small values as records in packs: files to which processes append, and an index that names the record of each key.
///
/// Not used by ``Store`` yet. Missing: eviction and reuse of packs, adoption of a dead process's pack, rules, listing, and
/// the way of a value from a pack to a file and back (`HomesModel`).
///
/// A put appends a record and then publishes it with one atomic change of a word of the index. A get loads the word,
/// copies the record from the mapped pack, and checks its key, its checksum and then the word again. No call takes a lock
/// that another process can hold. `BucketModel` shows in every interleaving that each key is linearizable.
final class Packs: Sendable {
    private let index: PackIndex
    private let files: PackFiles
    private let writer: Locked<PackWriter>

    /// Opens the packs in `root`, and creates the folder and an index of the given size if they are missing.
    ///
    /// - Throws: ``Errno/notSupported`` if the file system has no unnamed files; ``Errno/badMessage`` for a damaged index.
    init(in root: borrowing Directory, bucketCount: Int, packCount: Int) throws(Errno) {
        try root.makeDirectoryIfMissing(PackLayout.folder, mode: FileMode.directory)
        let folder = try root.openDirectory(PackLayout.folder)
        index = try PackIndex.open(in: folder, bucketCount: bucketCount, packCount: packCount)
        files = PackFiles(in: folder, count: index.packCount)
        writer = Locked(PackWriter(index, files))
    }

    /// Stores `value` under `key`, replacing any record; returns false if there is no free pack.
    ///
    /// Every get that starts later, in any process, gets the value. One system call, `pwrite`; about ten more for each new
    /// pack of 1 MiB.
    func put(
        _ value: Span<UInt8>,
        for key: Digest,
        _ record: Record,
        minute: UInt16 = 0
    ) throws(Errno) -> Bool {
        precondition(value.count <= PackLayout.longestValue, "too long for a pack")
        let word = try writer.withLock { (writer) throws(Errno) in
            try writer.append(value, record, for: key, minute: minute)
        }
        guard let word else { return false }
        while try !publish(word, for: key) {}
        return true
    }

    /// Makes one attempt to publish a record: replaces the lowest word of the key or, if it has none, takes an empty word.
    ///
    /// In a full bucket it takes the last word from its key. A lower word could hide another word of its key.
    private func publish(_ word: PackWord, for key: Digest) throws(Errno) -> Bool {
        let bucket = index.bucket(of: key)
        var free: Int?
        var last = PackWord.empty
        for position in bucket..<bucket + PackLayout.bucketCapacity {
            last = index.word(at: position)
            if last == .empty {
                free = free ?? position
            } else if try pack(of: last, ifRecordOf: key) != nil {
                return index.replace(last, by: word, at: position)
            }
        }
        if let free { return index.replace(.empty, by: word, at: free) }
        return index.replace(last, by: word, at: bucket + PackLayout.bucketCapacity - 1)
    }

    /// Returns the record of `key`; nil if there is none, or if it is damaged.
    ///
    /// No system call, once its pack is mapped. The minute of the use is noted in the word.
    func get(_ key: Digest, minute: UInt16 = 0) throws(Errno) -> PackRecord? {
        let bucket = index.bucket(of: key)
        var position = bucket
        while position < bucket + PackLayout.bucketCapacity {
            let word = index.word(at: position)
            guard let pack = try pack(of: word, ifRecordOf: key) else {
                position += 1
                continue
            }
            let found = try PackRecord(of: key, at: word.offset, in: pack)
            // Order the copy before the checks.
            atomicMemoryFence(ordering: .acquiring)
            let present = index.word(at: position)
            guard present.identity == word.identity, index.isCurrent(word) else {
                // The record was replaced or removed, and its pack may have been overwritten during the copy.
                position = bucket
                continue
            }
            let used = present.used(at: minute)
            // If another process has changed the word, that use or that value counts.
            if found != nil, used != present { _ = index.replace(present, by: used, at: position) }
            return found
        }
        return nil
    }

    /// Removes the record of `key`; returns false if there was none.
    ///
    /// It clears the words that it has found, from the highest down, unless a put has replaced them since.
    func remove(_ key: Digest) throws(Errno) -> Bool {
        let bucket = index.bucket(of: key)
        var found: [(position: Int, word: PackWord)] = []
        for position in bucket..<bucket + PackLayout.bucketCapacity {
            let word = index.word(at: position)
            if try pack(of: word, ifRecordOf: key) != nil { found.append((position, word)) }
        }
        for (position, word) in found.reversed() {
            var present = index.word(at: position)
            while present.identity == word.identity, !index.replace(present, by: .empty, at: position) {
                present = index.word(at: position)
            }
        }
        return !found.isEmpty
    }

    /// Returns the pack of the word, if the word names a record of the key; otherwise nil.
    private func pack(of word: PackWord, ifRecordOf key: Digest) throws(Errno) -> MappedBytes? {
        guard word.tag == PackWord.tag(of: key), index.isCurrent(word), let pack = try files.pack(word.pack)
        else { return nil }
        return PackRecord.isRecord(of: key, at: word.offset, in: pack) ? pack : nil
    }
}
