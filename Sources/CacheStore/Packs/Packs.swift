// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform
import Synchronization

/// Small values as records in packs: files to which processes append, and an index that names the record of each key.
///
/// Not used by ``Store`` yet. Missing: the choice of what to evict, rules, listing, and the way of a value from a pack to a
/// file and back (`HomesModel`).
///
/// A put appends a record and then publishes it with one atomic change of a word of the index. A get loads the word,
/// copies the record from the mapped pack, and checks its key, its checksum and then the word again. No call takes a lock
/// that another process can hold. `BucketModel` shows in every interleaving that each key is linearizable.
final class Packs: Sendable {
    private let index: PackIndex
    private let files: PackFiles
    /// The threads of this process append one after another: the lock is held during `pwrite`.
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
        // If this thread was delayed after the pack was ended, the pack may have been reclaimed before the word was there.
        if index.isCurrent(word) { return true }
        return try put(value, for: key, record, minute: minute)
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

    // MARK: Reclaiming

    /// The outcome of ``reclaim(pack:keeps:)``.
    struct Reclaimed: Equatable {
        /// The records that were moved to another pack, and those whose keys were evicted.
        var moved = 0
        var evicted = 0
    }

    /// Frees a pack: moves records to the pack that this process writes to, and evicts the others.
    ///
    /// The pack of a dead process is taken over. Only one process at a time may reclaim.
    ///
    /// - Parameters:
    ///   - row: the row of the pack in the table.
    ///   - keeps: whether a record is moved, by its word. If there is no free pack for it, it is evicted.
    /// - Returns: nil if the pack is free already, or if a living process writes to it.
    func reclaim(pack row: Int, keeps: (PackWord) -> Bool) throws(Errno) -> Reclaimed? {
        var state = index.state(ofPack: row)
        if state.use == .open {
            // The lock is free only if the writer is dead.
            guard try files.open(row) != nil else { return nil }
            let ended = PackState(.full, sequence: state.sequence)
            guard index.replace(state, by: ended, ofPack: row) else { return nil }
            state = ended
        }
        guard state.use == .full, let pack = try files.pack(row) else { return nil }
        var outcome = Reclaimed()
        var offset = PackLayout.unit
        // Beyond the last record there may be records from before the pack was begun again. No word names them.
        while let (key, size) = PackRecord.header(at: offset, in: pack) {
            let record = PackWord(of: key, pack: row, sequence: state.sequence, offset: offset, minute: 0)
            let bytes = offset..<offset + size
            while try !release(record, of: key, bytes, in: pack, keeps, &outcome) {}
            offset = PackLayout.end(ofRecord: size, at: offset)
        }
        return index.replace(state, by: PackState(.free, sequence: state.sequence), ofPack: row)
            ? outcome : nil
    }

    /// Makes one attempt to move or evict a record; returns false if another process has changed its word meanwhile.
    private func release(
        _ record: PackWord,
        of key: Digest,
        _ bytes: Range<Int>,
        in pack: MappedBytes,
        _ keeps: (PackWord) -> Bool,
        _ outcome: inout Reclaimed
    ) throws(Errno) -> Bool {
        let bucket = index.bucket(of: key)
        let end = bucket + PackLayout.bucketCapacity
        guard let position = (bucket..<end).first(where: { index.word(at: $0).identity == record.identity })
        else {
            // The value was replaced or removed.
            return true
        }
        let word = index.word(at: position)
        guard word.identity == record.identity else { return false }
        var isHidden = false
        for lower in bucket..<position where try self.pack(of: index.word(at: lower), ifRecordOf: key) != nil
        {
            isHidden = true
        }
        if !isHidden, keeps(word) {
            let copy = try writer.withLock { (writer) throws(Errno) in
                try writer.append(copyOf: pack.bytes(bytes), for: key, minute: word.minute)
            }
            if let copy {
                guard index.replace(word, by: copy, at: position) else { return false }
                outcome.moved += 1
                return true
            }
        }
        // A word above must not come to light when this one goes.
        for above in (position + 1..<end).reversed() {
            let hidden = index.word(at: above)
            if try self.pack(of: hidden, ifRecordOf: key) != nil {
                _ = index.replace(hidden, by: .empty, at: above)
            }
        }
        guard index.replace(word, by: .empty, at: position) else { return false }
        if !isHidden { outcome.evicted += 1 }
        return true
    }

    /// Returns the pack of the word, if the word names a record of the key; otherwise nil.
    private func pack(of word: PackWord, ifRecordOf key: Digest) throws(Errno) -> MappedBytes? {
        guard word.tag == PackWord.tag(of: key), index.isCurrent(word), let pack = try files.pack(word.pack)
        else { return nil }
        return PackRecord.isRecord(of: key, at: word.offset, in: pack) ? pack : nil
    }
}
