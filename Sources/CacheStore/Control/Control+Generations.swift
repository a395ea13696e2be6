// SPDX-License-Identifier: Apache-2.0

import Platform

/// The generation table, which shows whether the values of keys have changed since they were read from disk.
///
/// Each word covers the keys whose digests share the leading 18 bits. A writer raises the word before and after it
/// publishes. A reader that keeps a value in memory remembers the word that it loaded before it read the record, if that
/// word counted no writers. It may return the value as long as the word is unchanged.
extension Control {
    // MARK: Reading

    /// Returns the generation of `key`, to be loaded before its record is read; nil if there is no control file.
    ///
    /// If values may not be held in memory now, the generation has writers (``Generation/hasWriters``). Three loads, one of
    /// them of the file's state.
    func generation(of key: Digest) -> Generation? {
        guard let words else { return nil }
        let index = Generation.index(of: key)
        var word = words.load(ControlLayout.generations + index)
        if !words.areReady { word |= GenerationWord.closed }
        return Generation(index: index, word: word, mapping: words.address)
    }

    /// Returns whether a value that is held under `generation` is still current; nil if there is no control file.
    ///
    /// Three loads: the address of the mapped file's words, the state, and the word. (The state is needed because a writer
    /// that finds the file superseded raises no word in it.) No reference counting.
    func isCurrent(_ generation: Generation?) -> Bool? {
        guard let words else { return nil }
        return generation.map { words.hold($0) } ?? false
    }

    /// Returns whether no other writer can have replaced or removed the value of a put of this process.
    ///
    /// `generation` is the one that the put loaded before it began to write; nil if there was no control file. If no writer
    /// has begun since then, the put has not written the value yet. If no writer was active at that time, and since then
    /// exactly one has begun, or has begun and ended, then that writer was this put, or the put has not written yet.
    /// Otherwise the order is unknown until the put has ended: a writer that was already active may overwrite the value.
    func isLatest(_ generation: Generation?) -> Bool {
        guard let generation, let words else { return false }
        if words.hold(generation) { return true }
        return !generation.hasWriters
            && (words.hold(generation.adding(GenerationWord.begin))
                || words.hold(generation.adding(GenerationWord.raise)))
    }

    /// Does the same as ``isCurrent(_:)`` for the parts of a generation; false if there is no control file.
    @inline(__always)
    func holds(_ word: UInt64, at index: Int, of mapping: UInt) -> Bool {
        guard let words, words.address == mapping, words.areReady else { return false }
        return words.load(ControlLayout.generations + index) == word
    }

    /// Returns whether a process is writing a key that shares the word of `key`, or was killed while it was writing one.
    ///
    /// Two loads.
    func hasWriters(of key: Digest) -> Bool {
        guard let words else { return false }
        let word = words.load(ControlLayout.generations + Generation.index(of: key))
        return GenerationWord(rawValue: word).hasWriters
    }

    // MARK: Writing

    /// Registers a writer in the word of `key` until the returned change ends, and adds the key to the filter if the writer
    /// `publishes` an entry.
    ///
    /// The caller holds the entry's stripe. If there is no control file, nothing is registered: then no process can hold
    /// values, and no word has to be raised. A control file that another process creates meanwhile is used only after its
    /// creator has held the stripe.
    ///
    /// No system call; six if the file was replaced, one if it is missing.
    ///
    /// - Throws: An error if the file exists but can't be mapped: without raising the word, publishing would leave old
    ///   values valid in the memory of other processes.
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

    /// Prefetches the words that ``beginChange(of:publishes:)`` uses: they depend on the key, so they are in no CPU cache.
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
            // If another file replaced this one meanwhile, processes may hold values under the new file.
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

/// The registration of a writer in a word of the generation table, from before its change until after it.
struct GenerationChange: ~Copyable {
    /// Nil if no word has to be raised, or if the change has ended.
    private var words: MappedWords?
    private let index: Int
    /// The word before the registration.
    private let before: UInt64

    /// Creates a change that registers nothing: no process can hold the key's value in memory.
    init() { (words, index, before) = (nil, 0, 0) }

    fileprivate init(of index: Int, in words: MappedWords) {
        self.words = words
        self.index = index
        before = words.add(GenerationWord.begin, at: ControlLayout.generations + index)
    }

    deinit {
        // A failed operation may have published its change nevertheless.
        if let words { words.add(GenerationWord.end, at: ControlLayout.generations + index) }
    }

    /// Ends the writer's registration and raises the version.
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
