// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform
import Synchronization

/// Small values as records in packs: files to which processes append, and an index that names the record of each key.
///
/// Used by ``Store`` only if ``StoreOptions/packsSmallValues`` is set. Missing: the choice of what to evict, rules that are
/// retired, listing, limits, packs on file systems where a store into a mapping may need space (``SharedMapping``), and a
/// scan that clears the words of damaged records before their pack has been started 16 times: then the sequence bits of
/// such a word would be right again. ``reclaim(pack:keeps:)`` is not called by the store; it neither raises generations nor
/// deletes entries below the words that it clears.
///
/// A put appends a record and then publishes it with one atomic change of a word of the index. A get loads the word,
/// copies the record from the mapped pack, and checks its key, its checksum and then the word again. Only calls that add
/// or remove the word of a key lock the key's stripe. So a key never has two words; `BucketModel` explores all
/// interleavings.
final class Packs: Sendable {
    private let index: PackIndex
    private let files: PackFiles
    let stripes: Stripes
    private let path: String
    private let owner = processGeneration
    /// The threads of this process append one after another: the lock is held during `pwrite`, and while a new pack is
    /// started.
    private let writer: Locked<PackWriter>

    /// How often a call repeats its work because other processes change the same words.
    private static let attempts = 64

    /// Opens the packs in `directory`, and creates the folder and an index of the given size if they are missing.
    ///
    /// - Parameters:
    ///   - stripes: the stripes of the entries.
    ///   - bucketCount: the size of a new index (``PackIndex/open(in:bucketCount:packCount:)``).
    ///   - packCount: the size of its table of packs.
    /// - Throws: an error with the cause ``Errno/notSupported`` if the file system has no unnamed files, or
    ///   ``Errno/badMessage`` for a damaged index.
    init(
        in directory: StoreDirectory,
        stripes: Stripes,
        bucketCount: Int = PackLayout.usualBuckets,
        packCount: Int = PackLayout.usualPacks
    ) throws(CacheError) {
        self.stripes = stripes
        path = "\(directory.path)/\(PackLayout.folder)"
        do throws(Errno) {
            try directory.root.makeDirectoryIfMissing(PackLayout.folder, mode: FileMode.directory)
            let folder = try directory.root.openDirectory(PackLayout.folder)
            index = try PackIndex.open(in: folder, bucketCount: bucketCount, packCount: packCount)
            files = PackFiles(in: folder, count: index.packCount)
        } catch {
            throw CacheError(errno: error, "open", path: path)
        }
        writer = Locked(PackWriter(index, files))
    }

    // MARK: Writing

    /// Replaces the value of `key`, if it has a record; returns false if it has none, or if the value can't be in a pack.
    ///
    /// Every get that starts later, in any process, gets the value. Takes no lock on disk. One system call, `pwrite`; nine
    /// more for each new pack of 1 MiB.
    ///
    /// - Parameter record: returns the terms of the value; called after the record to be replaced was found, so that the
    ///   rules in force may be read in it.
    func replace(
        _ value: Span<UInt8>,
        for key: Digest,
        minute: UInt16 = 0,
        record: () -> Record
    ) throws(CacheError) -> Bool {
        for _ in 0..<Self.attempts {
            guard let found = try find(key),
                let word = try append(value, record(), for: key, minute: minute)
            else { return false }
            // Otherwise the record was replaced or removed meanwhile.
            guard index.replaceRecord(found.word, by: word, at: found.position) else { continue }
            // If this thread was delayed since the append, the pack may be full and about to be reclaimed. Either the
            // process that reclaims it sees the word, or this one sees the state of the pack.
            if index.accepts(word) { return true }
        }
        return false
    }

    /// Stores the value of a key that may have no record; returns false if there is no free pack, or no free word in the
    /// key's bucket.
    ///
    /// The system calls of ``replace(_:for:minute:record:)``.
    ///
    /// - Parameters:
    ///   - record: returns the terms of the value, as in ``replace(_:for:minute:record:)``: the stripe keeps no process from
    ///     replacing a record.
    ///   - lock: the key's stripe, locked exclusively. So a key never gets two words: with two, a removed value could return.
    func put(
        _ value: Span<UInt8>,
        for key: Digest,
        minute: UInt16 = 0,
        under lock: borrowing StripeLock,
        record: () -> Record
    ) throws(CacheError) -> Bool {
        for _ in 0..<Self.attempts {
            let found = try find(key)
            guard let word = try append(value, record(), for: key, minute: minute) else { return false }
            if let found {
                guard index.replaceRecord(found.word, by: word, at: found.position) else { continue }
            } else {
                guard let free = freeWord(for: key) else { return false }
                guard index.replace(free.word, by: word, at: free.position) else { continue }
            }
            if index.accepts(word) { return true }
        }
        return false
    }

    /// Returns a word of the key's bucket that is empty or names no record anymore; nil if there is none.
    private func freeWord(for key: Digest) -> (position: Int, word: PackWord)? {
        let bucket = index.bucket(of: key)
        for position in bucket..<bucket + PackLayout.bucketCapacity {
            let word = index.word(at: position)
            if !index.isCurrent(word) { return (position, word) }
        }
        return nil
    }

    /// Appends a record to the pack of this process and returns its word.
    ///
    /// Nil if there is no free pack, if the disk is full, if the terms are too long, or in a forked child.
    private func append(
        _ value: Span<UInt8>,
        _ record: Record,
        for key: Digest,
        minute: UInt16
    ) throws(CacheError) -> PackWord? {
        precondition(value.count <= PackLayout.longestValue, "too long for a pack")
        guard processGeneration == owner else { return nil }
        do throws(Errno) {
            return try writer.withLock { (writer) throws(Errno) in
                try writer.append(value, record, for: key, minute: minute)
            }
        } catch {
            if error.isDiskFull || error == .argumentListTooLong { return nil }
            throw CacheError(errno: error, "write a value to", path: path)
        }
    }

    // MARK: Reading

    /// Returns the word of the key; nil if it has no record.
    func word(of key: Digest) throws(CacheError) -> PackWord? {
        try find(key)?.word
    }

    /// Returns the record of `key`; nil if there is none, or if it is damaged.
    ///
    /// No system call, once its pack is mapped. The minute of the use is noted in the word.
    func get(_ key: Digest, minute: UInt16 = 0) throws(CacheError) -> PackRecord? {
        for _ in 0..<Self.attempts {
            guard let (position, word, pack) = try find(key) else { return nil }
            let record: PackRecord?
            do throws(Errno) {
                record = try PackRecord(of: key, at: word.offset, in: pack)
            } catch {
                throw CacheError(errno: error, "read a value from", path: path)
            }
            // Order the copy before the checks.
            atomicMemoryFence(ordering: .acquiring)
            let present = index.word(at: position)
            // Otherwise the record was replaced or removed, and its pack may have been overwritten during the copy.
            guard present.identity == word.identity, index.isCurrent(word) else { continue }
            let used = present.used(at: minute)
            // If another process has changed the word, that use or that value counts.
            if record != nil, used != present { _ = index.replace(present, by: used, at: position) }
            return record
        }
        return nil
    }

    /// Removes the record that `word` names; returns false if the key has another one by now, or none.
    ///
    /// - Parameter lock: the key's stripe, so that no other caller gives the key a word.
    func remove(_ word: PackWord, of key: Digest, under lock: borrowing StripeLock) -> Bool {
        guard let position = position(of: word, key) else { return false }
        return index.replaceRecord(word, by: .empty, at: position)
    }

    /// Returns the word of the key, its position, and the pack with its record.
    private func find(_ key: Digest) throws(CacheError) -> (position: Int, word: PackWord, pack: MappedBytes)?
    {
        let (bucket, tag) = (index.bucket(of: key), PackWord.tag(of: key))
        do throws(Errno) {
            for position in bucket..<bucket + PackLayout.bucketCapacity {
                var word: PackWord
                repeat {
                    word = index.word(at: position)
                    guard word.tag == tag else { break }
                    if index.isCurrent(word), let pack = try files.pack(word.pack),
                        PackRecord.isRecord(of: key, at: word.offset, in: pack)
                    {
                        return (position, word, pack)
                    }
                    // A put may have replaced the word, and its pack may be in use again.
                } while index.word(at: position).identity != word.identity
            }
            return nil
        } catch {
            throw CacheError(errno: error, "map a file in", path: path)
        }
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
    /// The pack of a dead process is taken over. Only one process at a time may reclaim packs.
    ///
    /// - Parameters:
    ///   - row: the row of the pack in the table.
    ///   - keeps: whether a record is moved, by its word. If there is no free pack for it, it is evicted.
    /// - Returns: nil if the pack is free already or in use by a living writer, and in a forked child.
    /// - Throws: ``CacheError/Code/busy`` if the stripe of a key was not free in time; the other records stay.
    func reclaim(pack row: Int, keeps: (PackWord) -> Bool) throws(CacheError) -> Reclaimed? {
        guard processGeneration == owner, let state = try beginReclaiming(row) else { return nil }
        var outcome = Reclaimed()
        do throws(CacheError) {
            let pack = try describing("map a file in", path) { () throws(Errno) in try files.pack(row) }
            if let pack { try release(pack, row, state.sequence, keeps, &outcome) }
        } catch {
            _ = index.replace(state, by: PackState(.full, sequence: state.sequence), ofPack: row)
            throw error
        }
        _ = index.replace(state, by: PackState(.free, sequence: state.sequence), ofPack: row)
        return outcome
    }

    /// Marks the pack as being reclaimed, and returns its state; nil if it is free or a living process writes to it.
    private func beginReclaiming(_ row: Int) throws(CacheError) -> PackState? {
        let state = index.state(ofPack: row)
        if state.use == .free { return nil }
        if state.use == .open {
            // The lock is free only if the writer is dead.
            let isDead = try describing("lock a file in", path) { () throws(Errno) in
                try files.open(row) != nil
            }
            if !isDead { return nil }
        }
        let begun = PackState(.reclaimed, sequence: state.sequence)
        return state == begun || index.replace(state, by: begun, ofPack: row) ? begun : nil
    }

    /// Moves or evicts all records of a pack that the index names.
    private func release(
        _ pack: MappedBytes,
        _ row: Int,
        _ sequence: UInt64,
        _ keeps: (PackWord) -> Bool,
        _ outcome: inout Reclaimed
    ) throws(CacheError) {
        var offset = PackLayout.unit
        while offset < pack.count {
            guard let (key, size) = PackRecord.whole(at: offset, in: pack) else {
                // It is unfinished, damaged, or older than the last start of the pack. The next record may be at any unit.
                offset += PackLayout.unit
                continue
            }
            let record = PackWord(of: key, pack: row, sequence: sequence, offset: offset, minute: 0)
            if position(of: record, key) != nil {
                let lock = try stripes.lock(.exclusive, stripe: key.stripe)
                try release(record, of: key, offset..<offset + size, in: pack, keeps, &outcome, under: lock)
            }
            offset = PackLayout.end(ofRecord: size, at: offset)
        }
    }

    /// Returns the position of the word that names the record; nil if none does.
    private func position(of record: PackWord, _ key: Digest) -> Int? {
        let bucket = index.bucket(of: key)
        return (bucket..<bucket + PackLayout.bucketCapacity).first {
            index.word(at: $0).identity == record.identity
        }
    }

    /// Moves or evicts a record; does nothing if no word names it.
    private func release(
        _ record: PackWord,
        of key: Digest,
        _ bytes: Range<Int>,
        in pack: MappedBytes,
        _ keeps: (PackWord) -> Bool,
        _ outcome: inout Reclaimed,
        under lock: borrowing StripeLock
    ) throws(CacheError) {
        guard let position = position(of: record, key) else { return }
        let word = index.word(at: position)
        if word.identity == record.identity, keeps(word) {
            let copy = try describing("write a value to", path) { () throws(Errno) in
                try writer.withLock { (writer) throws(Errno) in
                    try writer.append(copyOf: pack.bytes(bytes), for: key, minute: word.minute)
                }
            }
            if let copy {
                // If it fails, a put has replaced the value.
                if index.replaceRecord(record, by: copy, at: position) { outcome.moved += 1 }
                return
            }
        }
        if index.replaceRecord(record, by: .empty, at: position) { outcome.evicted += 1 }
    }
}
