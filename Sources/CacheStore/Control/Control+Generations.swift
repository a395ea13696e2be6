// SPDX-License-Identifier: Apache-2.0

import Platform

/// The generation table: whether values of these keys have changed since they were read from disk.
///
/// A word belongs to the keys that share the leading 18 bits of their digests. A writer raises it before and after
/// publishing. A reader that keeps a value in memory remembers the word as it was before it read the record, with no writer
/// in it, and may return the value as long as the word is the same.
extension Control {
    // MARK: Reading

    /// Returns the generation of `key`, to be loaded before its record is read; nil if there is no control file.
    ///
    /// It has writers if no value may be held now. Two loads, and one of the file's state.
    func generation(of key: Digest) -> Generation? {
        guard let words else { return nil }
        let index = Generation.index(of: key)
        var word = words.load(ControlLayout.generations + index)
        if !words.areReady { word |= GenerationWord.closed }
        return Generation(index: index, word: word, mapping: words.address)
    }

    /// Returns whether a value that is held under `generation` is still current; nil if there is no control file.
    ///
    /// Three loads: which file is mapped, whether it is ready, and the word. (The second matters: a writer that finds the
    /// file superseded raises nothing in it.) No reference counting.
    func isCurrent(_ generation: Generation?) -> Bool? {
        guard let words else { return nil }
        return generation.map { words.hold($0) } ?? false
    }

    /// Returns whether no other writer can have replaced or removed the value of a put of this process.
    ///
    /// The put loaded `generation` before it began to write; nil if there was no control file. If no writer has begun since,
    /// the value has not been written yet. If no other writer was active, and since then exactly one has begun, or begun and
    /// ended, that was this put, or the put has not written yet. Otherwise the order is unknown until the put has ended: a
    /// writer that was active before may overwrite the value.
    func isLatest(_ generation: Generation?) -> Bool {
        guard let generation, let words else { return false }
        if words.hold(generation) { return true }
        return !generation.hasWriters
            && (words.hold(generation.adding(GenerationWord.begin))
                || words.hold(generation.adding(GenerationWord.raise)))
    }

    /// Does the same loads as ``isCurrent(_:)``, with the parts of a generation.
    @inline(__always)
    func holds(_ word: UInt64, at index: Int, of mapping: UInt) -> Bool {
        guard let words, words.address == mapping, words.areReady else { return false }
        return words.load(ControlLayout.generations + index) == word
    }

    /// Returns whether a process is writing a key that shares the word of `key`, or was killed while writing one.
    ///
    /// Two loads.
    func hasWriters(of key: Digest) -> Bool {
        guard let words else { return false }
        let word = words.load(ControlLayout.generations + Generation.index(of: key))
        return GenerationWord(rawValue: word).hasWriters
    }

    // MARK: Writing

    /// Registers a writer in the word of `key`, until the result ends, and adds the key to the filter if the writer
    /// `publishes` an entry.
    ///
    /// The caller holds the entry's stripe. Nothing is registered if there is no control file under which a process could
    /// hold values: then no word has to be raised. A file that appears meanwhile is used only after its maker has held the
    /// stripe.
    ///
    /// No system call; four if the file was replaced, one if it is missing.
    ///
    /// - Throws: The reason if the file exists but can't be mapped: publishing without raising the word would leave old
    ///   values in the memory of other processes.
    func beginChange(of key: Digest, publishes: Bool = true) throws(CacheError) -> GenerationChange {
        if isImpossible { return GenerationChange() }
        if let change = begun(key, publishes) { return change }
        guard try mapPresent(isWritable: true) else { return GenerationChange() }
        return begun(key, publishes) ?? GenerationChange()
    }

    private func begun(_ key: Digest, _ publishes: Bool) -> GenerationChange? {
        guard let words = countingWords else { return nil }
        if publishes { BloomFilter(in: words).insert(key) }
        return GenerationChange(of: Generation.index(of: key), in: words)
    }

    /// Prefetches the words that ``beginChange(of:publishes:)`` uses, which depend on the key and so are in no CPU cache.
    func prefetch(_ key: Digest) {
        guard let words = writableWords else { return }
        BloomFilter(in: words).prefetch(key)
        words.prefetch(ControlLayout.generations + Generation.index(of: key))
    }

    /// Raises every version, so that all values that processes hold in memory are read from disk again.
    package func raiseAll() throws(CacheError) {
        if isImpossible { return }
        while true {
            if countingWords == nil { _ = try mapPresent(isWritable: true) }
            guard let words = countingWords else { return }
            raiseAll(words)
            // If another file replaced this one meanwhile, values may be held under that one.
            if !words.areSuperseded { return }
        }
    }

    /// Raises every version in these words.
    func raiseAll(_ words: MappedWords) {
        for index in 0..<ControlLayout.generationCount {
            words.add(GenerationWord.raise, at: ControlLayout.generations + index)
        }
    }
}

/// A writer's registration in a word of the generation table, from before its change until after it.
struct GenerationChange: ~Copyable {
    /// Nil if no word has to be raised, and once the change has ended.
    private var words: MappedWords?
    private let index: Int
    /// The word before the registration.
    private let before: UInt64

    /// A change of a key that no process can hold in memory.
    init() { (words, index, before) = (nil, 0, 0) }

    fileprivate init(of index: Int, in words: MappedWords) {
        self.words = words
        self.index = index
        before = words.add(GenerationWord.begin, at: ControlLayout.generations + index)
    }

    deinit {
        // An operation that failed may have been published nevertheless.
        if let words { words.add(GenerationWord.end, at: ControlLayout.generations + index) }
    }

    /// Removes the writer and raises the version.
    ///
    /// - Returns: The generation under which the value just written may be held; nil if another writer was active meanwhile,
    ///   or the file is not ready.
    @discardableResult
    consuming func end() -> Generation? {
        guard let words = words.take() else { return nil }
        let last = words.add(GenerationWord.end, at: ControlLayout.generations + index)
        guard !GenerationWord(rawValue: before).hasWriters, last == before &+ GenerationWord.begin,
            words.areReady
        else { return nil }
        return Generation(index: index, word: last &+ GenerationWord.end, mapping: words.address)
    }
}

extension MappedWords {
    /// Returns whether these are the words of the file of `generation`, the file is ready, and no writer has begun since.
    fileprivate func hold(_ generation: Generation) -> Bool {
        address == generation.mapping && areReady
            && load(ControlLayout.generations + generation.index) == generation.word
    }
}
