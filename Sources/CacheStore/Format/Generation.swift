// SPDX-License-Identifier: Apache-2.0

/// The state of all keys that share a word of the generation table, at one moment.
///
/// It belongs to the mapping that it was read from, and is current in no other.
package struct Generation: Sendable, Equatable {
    /// The word when it was loaded.
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

    /// Returns a generation with the same place and `difference` added to the word.
    func adding(_ difference: UInt64) -> Generation {
        Generation(index: index, word: word &+ difference, mapping: mapping)
    }

    /// Whether a writer was active: then no value that is read now may be held under it.
    package var hasWriters: Bool { GenerationWord(rawValue: word).hasWriters }

    /// Returns the place of a key's word: the leading bits of its digest.
    ///
    /// Fewer leading bits choose the stripe, so all keys of a word belong to one stripe.
    static func index(of key: Digest) -> Int {
        Int(truncatingIfNeeded: key.word(0).byteSwapped >> UInt64(64 - ControlLayout.generationBits))
    }

    /// Returns the places that belong to an entry stripe.
    static func indices(ofStripe stripe: Int) -> Range<Int> {
        let count = ControlLayout.generationCount / StoreLayout.stripeCount
        return stripe * count..<(stripe + 1) * count
    }
}

/// A word of the table: a version in the upper 48 bits, and the number of active writers in the lower 16.
package struct GenerationWord: Sendable, Equatable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// Creates a word without writers.
    package init(version: UInt64) {
        rawValue = version << 16
    }

    package var version: UInt64 { rawValue >> 16 }
    package var writers: UInt64 { rawValue & Self.writers }
    package var hasWriters: Bool { writers != 0 }

    /// The bits that count writers.
    static let writers: UInt64 = 0xffff
    /// The number that a writer adds before it publishes.
    package static let begin: UInt64 = 1
    /// The number that a writer adds, wrapping, after it has published: one version more and one writer less, in one step.
    package static let end: UInt64 = 1 << 16 &- 1
    /// The number that is added so that all values in memory are read again: one version more.
    package static let raise: UInt64 = 1 << 16
    /// A writer count that no number of writers reaches or removes, for a file that is not valid.
    static let closed: UInt64 = 1 << 15

    /// The word after a sweep that has kept all writers out: writers that are still counted were killed, and may have
    /// published.
    package var cleared: GenerationWord { GenerationWord(version: version &+ 1) }
}
