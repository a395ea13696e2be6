// SPDX-License-Identifier: Apache-2.0

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

    package init(index: Int, word: UInt64, mapping: UInt = 0) {
        place = UInt32(index)
        self.word = word
        self.mapping = mapping
    }

    /// The same place with another word.
    func adding(_ difference: UInt64) -> Generation {
        Generation(index: index, word: word &+ difference, mapping: mapping)
    }

    /// Whether somebody was writing: then nothing that is read now may be held by it.
    package var hasWriters: Bool { GenerationWord(rawValue: word).hasWriters }

    /// The place of a key's word: the leading bits of its digest, so that all keys of a word belong to one stripe, which
    /// fewer of them choose.
    static func index(of key: Digest) -> Int {
        Int(truncatingIfNeeded: key.word(0).byteSwapped >> UInt64(64 - ControlLayout.generationBits))
    }

    /// The places that belong to an entry stripe.
    static func indices(ofStripe stripe: Int) -> Range<Int> {
        let count = ControlLayout.generationCount / StoreLayout.stripeCount
        return stripe * count..<(stripe + 1) * count
    }
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
    package var writers: UInt64 { rawValue & Self.writers }
    package var hasWriters: Bool { writers != 0 }

    /// The bits that count them.
    static let writers: UInt64 = 0xffff
    /// What a writer adds before it publishes.
    package static let begin: UInt64 = 1
    /// What it adds, wrapping, when it has published: a version more and a writer less, in one step.
    package static let end: UInt64 = 1 << 16 &- 1
    /// What is added where all that is held in memory is to be read again: a version more.
    package static let raise: UInt64 = 1 << 16
    /// A count that no number of writers reaches or takes away: of a file that counts no more.
    static let closed: UInt64 = 1 << 15

    /// What a sweep makes of it that has kept all writers out: whoever is counted was killed, and may have
    /// published.
    package var cleared: GenerationWord { GenerationWord(version: version &+ 1) }
}
