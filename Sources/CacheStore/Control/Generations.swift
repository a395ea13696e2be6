// SPDX-License-Identifier: Apache-2.0

import Platform

/// A moment in the life of all keys that share a word of the generation table.
///
/// It belongs to the mapping that it was read from, and is current in no other.
package struct Generation: Sendable, Equatable {
    /// The word as it was.
    package let word: UInt64
    /// The address of the mapping.
    package let mapping: UInt
    private let place: UInt32

    /// The word's place in the table.
    package var index: Int { Int(place) }

    /// Where the word is in memory, as long as its mapping is; only for having it fetched.
    package var address: UInt {
        mapping &+ UInt(ControlLayout.generations + index) * 8
    }

    package init(index: Int, word: UInt64) {
        self.init(index: index, word: word, mapping: 0)
    }

    init(index: Int, word: UInt64, mapping: UInt) {
        place = UInt32(index)
        self.word = word
        self.mapping = mapping
    }

    /// The same place with another word.
    fileprivate func adding(_ difference: UInt64) -> Generation {
        Generation(index: index, word: word &+ difference, mapping: mapping)
    }

    /// Whether somebody was writing: then nothing that is read now may be held by it.
    package var hasWriters: Bool { GenerationWord(rawValue: word).hasWriters }
}

/// A word of the table: a version in the upper 48 bits, and how many are writing in the lower 16.
package struct GenerationWord: Sendable, Equatable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// With nobody writing.
    package init(version: UInt64) {
        rawValue = version << 16
    }

    package var version: UInt64 { rawValue >> 16 }
    package var writers: UInt64 { rawValue & 0xffff }
    package var hasWriters: Bool { writers != 0 }

    /// What a writer adds before it publishes.
    package static let begin: UInt64 = 1
    /// What it adds, wrapping, when it has published: a version more and a writer less, in one step.
    package static let end: UInt64 = 1 << 16 &- 1
    /// What is added where all that is held in memory is to be read again: a version more.
    package static let raise: UInt64 = 1 << 16
    /// A count that no number of writers reaches or takes away: of a file that counts no more.
    package static let closed: UInt64 = 1 << 15

    /// What a sweep makes of it that has kept all writers out: whoever is counted was killed, and may have
    /// published.
    package var cleared: GenerationWord { GenerationWord(version: version &+ 1) }
}

/// The generation table: whether values of these keys have changed since they were read from disk.
///
/// A word belongs to the keys that share the leading 18 bits of their digests. A writer raises it around
/// publishing; a reader who keeps a value in memory remembers the word as it was before it read the record,
/// with no writer in it, and may give the value out as long as the word is the same.
package struct Generations: Sendable {
    let control: Control

    /// The word of `key`, to be looked at before its record is read.
    ///
    /// Has writers where nothing may be held now. Two loads, and one of the file's state.
    package func current(of key: Digest) -> Generation {
        let index = Self.index(of: key)
        guard let words = control.words else {
            return Generation(index: index, word: GenerationWord.closed)
        }
        var word = words.load(ControlLayout.generations + index)
        if words.load(ControlLayout.stateIndex) != ControlFile.State.ready.rawValue {
            word |= GenerationWord.closed
        }
        return Generation(index: index, word: word, mapping: words.address)
    }

    /// Whether nobody has begun to write since `generation` was read.
    ///
    /// Three loads: which file is mapped, whether it still counts, and the word. (The second matters: a
    /// writer that finds the file superseded raises nothing in it.)
    package func isCurrent(_ generation: Generation) -> Bool {
        guard let words = control.words else { return false }
        return words.hold(generation)
    }

    /// The word's place: the leading 18 bits, so that it belongs to one stripe, which are the leading 6.
    package static func index(of key: Digest) -> Int {
        Int(key.byte(0)) << 10 | Int(key.byte(1)) << 2 | Int(key.byte(2) >> 6)
    }

    /// The places that belong to an entry stripe.
    static func indices(ofStripe stripe: Int) -> Range<Int> {
        let count = ControlLayout.generationCount / StoreLayout.stripeCount
        return stripe * count..<(stripe + 1) * count
    }
}

extension MappedWords {
    /// Whether these are the words of the file that `generation` is of, that file counts, and nobody has begun
    /// to write.
    fileprivate func hold(_ generation: Generation) -> Bool {
        address == generation.mapping && load(ControlLayout.stateIndex) == ControlFile.State.ready.rawValue
            && load(ControlLayout.generations + generation.index) == generation.word
    }
}

/// What the control file says of a value in memory.
package enum HeldCondition: Sendable {
    /// Nobody has changed it.
    case current
    /// Somebody has, or may have.
    case outdated
    /// There is no control file: the record on disk has to be looked at.
    case unknown
}

extension Store {
    /// Whether a value that is held by `generation` is still the one that counts.
    ///
    /// The loads of ``Generations/isCurrent(_:)``; counts no references.
    package func condition(of generation: Generation?) -> HeldCondition {
        guard let words = control.words else { return .unknown }
        guard let generation, words.hold(generation) else { return .outdated }
        return .current
    }

    /// Whether nobody else can have replaced or removed what a put of this process writes, which noted `generation`
    /// before it began to write; nil: there was no control file.
    ///
    /// So long as nobody has begun since, it is still to be written. Where nobody else was at it and exactly one has
    /// begun, or has begun and ended, that was this put, or it is still to write. Anything else is not known until it has
    /// ended: who was at it before may write what he has over it.
    package func isLatest(_ generation: Generation?) -> Bool {
        guard let generation, let words = control.words else { return false }
        if words.hold(generation) { return true }
        return !generation.hasWriters
            && (words.hold(generation.adding(GenerationWord.begin))
                || words.hold(generation.adding(GenerationWord.raise)))
    }

    /// Whether nobody has begun to write since this was the word at `index`, in the file that is mapped at `mapping`;
    /// if so, counts a hit in memory for all processes.
    ///
    /// What ``condition(of:)`` calls current, by the same loads; and one atomic addition.
    package func countsHit(_ word: UInt64, at index: Int, of mapping: UInt) -> Bool {
        guard let words = control.words, words.address == mapping,
            words.load(ControlLayout.stateIndex) == ControlFile.State.ready.rawValue,
            words.load(ControlLayout.generations + index) == word
        else { return false }
        counters.addForAll(.memoryHit)
        return true
    }
}
