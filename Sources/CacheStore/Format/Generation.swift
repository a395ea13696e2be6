// SPDX-License-Identifier: Apache-2.0

/// A snapshot of a word of the generation table, which all keys with the same index share.
///
/// It is valid only in the mapping that it was read from.
package struct Generation: Sendable, Equatable {
    /// The value of the word when it was loaded.
    package let word: UInt64
    /// The address of the mapping.
    package let mapping: UInt
    private let place: UInt32

    /// The word's index in the table.
    package var index: Int { Int(place) }

    package init(index: Int, word: UInt64, mapping: UInt = 0) {
        place = UInt32(index)
        self.word = word
        self.mapping = mapping
    }

    /// Returns a generation with the same index and `difference` added to the word.
    func adding(_ difference: UInt64) -> Generation {
        Generation(index: index, word: word &+ difference, mapping: mapping)
    }

    /// Whether a writer was active; if so, no value that is read now may be held in memory under this generation.
    package var hasWriters: Bool { GenerationWord(rawValue: word).hasWriters }

    /// Returns the index of a key's word: the leading bits of the key's digest.
    ///
    /// A stripe is chosen by fewer leading bits of the same digest, so all keys that share a word belong to one stripe.
    static func index(of key: Digest) -> Int {
        Int(truncatingIfNeeded: key.word(0).byteSwapped >> UInt64(64 - ControlLayout.generationBits))
    }

    /// Returns the indices of the words whose keys belong to an entry stripe.
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
    /// The number that a writer adds with wraparound after it has published, which increments the version and decrements
    /// the number of writers in one step.
    package static let end: UInt64 = 1 << 16 &- 1
    /// The number that is added to invalidate values in memory: it increments the version.
    package static let raise: UInt64 = 1 << 16
    /// A bit in the number of writers that real writers can neither set nor clear; it marks the words of a control file
    /// that is not ready.
    static let closed: UInt64 = 1 << 15

    /// The word without writers and with the next version, for a sweep that has excluded all writers.
    ///
    /// Writers that are still counted then were killed, and may have published.
    package var cleared: GenerationWord { GenerationWord(version: version &+ 1) }
}
