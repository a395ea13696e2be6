// SPDX-License-Identifier: Apache-2.0

import Platform

/// The generation table: whether values of these keys have changed since they were read from disk.
///
/// A word belongs to the keys that share the leading 18 bits of their digests. A writer raises it around
/// publishing; a reader who keeps a value in memory remembers the word as it was before it read the record,
/// with no writer in it, and may give the value out as long as the word is the same.
extension Control {
    // MARK: Reading

    /// The word of `key`, to be looked at before its record is read; nil: there is no control file.
    ///
    /// Has writers where nothing may be held now. Two loads, and one of the file's state.
    func generation(of key: Digest) -> Generation? {
        guard let words else { return nil }
        let index = Generation.index(of: key)
        var word = words.load(ControlLayout.generations + index)
        if !words.areReady { word |= GenerationWord.closed }
        return Generation(index: index, word: word, mapping: words.address)
    }

    /// Whether a value that is held by `generation` is still the one that counts; nil: there is no control file.
    ///
    /// Three loads: which file is mapped, whether it still counts, and the word. (The second matters: a
    /// writer that finds the file superseded raises nothing in it.) Counts no references.
    func isCurrent(_ generation: Generation?) -> Bool? {
        guard let words else { return nil }
        return generation.map { words.hold($0) } ?? false
    }

    /// Whether nobody else can have replaced or removed what a put of this process writes, which noted `generation`
    /// before it began to write; nil: there was no control file.
    ///
    /// So long as nobody has begun since, it is still to be written. Where nobody else was at it and exactly one has
    /// begun, or has begun and ended, that was this put, or it is still to write. Anything else is not known until it has
    /// ended: whoever was at it before may overwrite it.
    func isLatest(_ generation: Generation?) -> Bool {
        guard let generation, let words else { return false }
        if words.hold(generation) { return true }
        return !generation.hasWriters
            && (words.hold(generation.adding(GenerationWord.begin))
                || words.hold(generation.adding(GenerationWord.raise)))
    }

    /// The loads of ``isCurrent(_:)`` with the parts of a generation.
    @inline(__always)
    func holds(_ word: UInt64, at index: Int, of mapping: UInt) -> Bool {
        guard let words, words.address == mapping, words.areReady else { return false }
        return words.load(ControlLayout.generations + index) == word
    }

    /// Whether a process is writing a key of the word of `key`, or was killed while writing one.
    ///
    /// Two loads.
    func hasWriters(of key: Digest) -> Bool {
        guard let words else { return false }
        let word = words.load(ControlLayout.generations + Generation.index(of: key))
        return GenerationWord(rawValue: word).hasWriters
    }

    // MARK: Writing

    /// A writer's place in a word of the table.
    struct Writing {
        let words: MappedWords
        let index: Int
        /// The word before.
        let before: UInt64
    }

    /// Adds a writer to the word of `key`, and the key to the filter where the writer `publishes` an entry; the
    /// caller holds the entry's stripe.
    ///
    /// nil where there is no control file that anybody could hold values by: then nothing need be raised. A
    /// file that appears meanwhile counts only after its maker has had the stripe.
    ///
    /// No system call; four where the file has been replaced, one where there is none.
    ///
    /// - Throws: why it can't be mapped although it is there: to publish unnoticed would leave old values
    ///   in others' memory.
    func beginWriting(_ key: Digest, publishes: Bool = true) throws(CacheError) -> Writing? {
        if isImpossible { return nil }
        if let writing = add(key, publishes) { return writing }
        guard try mapPresent(isWritable: true) else { return nil }
        return add(key, publishes)
    }

    private func add(_ key: Digest, _ publishes: Bool) -> Writing? {
        guard let words = countingWords else { return nil }
        if publishes { KeyFilter(in: words).insert(key) }
        let index = Generation.index(of: key)
        let before = words.add(GenerationWord.begin, at: ControlLayout.generations + index)
        return Writing(words: words, index: index, before: before)
    }

    /// Has what ``beginWriting(_:publishes:)`` looks at fetched, which belongs to a key and so is in no cache.
    func prefetch(_ key: Digest) {
        guard let words = writableWords else { return }
        KeyFilter(in: words).prefetch(key)
        words.prefetch(ControlLayout.generations + Generation.index(of: key))
    }

    /// Takes the writer off and raises the version.
    ///
    /// The generation by which the value just written may be held: nil where anybody else was writing
    /// meanwhile.
    @discardableResult
    func endWriting(_ writing: Writing) -> Generation? {
        let words = writing.words
        let last = words.add(GenerationWord.end, at: ControlLayout.generations + writing.index)
        guard !GenerationWord(rawValue: writing.before).hasWriters,
            last == writing.before &+ GenerationWord.begin, words.areReady
        else { return nil }
        return Generation(index: writing.index, word: last &+ GenerationWord.end, mapping: words.address)
    }

    /// Raises every version: makes every value that any process holds in memory be read from disk again.
    package func raiseAll() throws(CacheError) {
        if isImpossible { return }
        while true {
            if countingWords == nil { _ = try mapPresent(isWritable: true) }
            guard let words = countingWords else { return }
            raiseAll(words)
            // Where another file took its place meanwhile, values may be held by that one.
            if !words.areSuperseded { return }
        }
    }

    /// The same in these words.
    func raiseAll(_ words: MappedWords) {
        for index in 0..<ControlLayout.generationCount {
            words.add(GenerationWord.raise, at: ControlLayout.generations + index)
        }
    }
}

extension MappedWords {
    /// Whether these are the words of the file that `generation` is of, that file counts, and nobody has begun
    /// to write.
    fileprivate func hold(_ generation: Generation) -> Bool {
        address == generation.mapping && areReady
            && load(ControlLayout.generations + generation.index) == generation.word
    }
}
