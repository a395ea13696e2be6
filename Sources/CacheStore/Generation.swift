// SPDX-License-Identifier: Apache-2.0

/// The state of a generation word at the moment when a value was read.
package struct Generation: Sendable, Equatable {
    /// Which word: the leading 16 bits of the key's digest.
    package var index: Int
    /// The version of the entries that share the word, and in the low 16 bits the writers in progress.
    package var word: UInt64

    package init(index: Int, word: UInt64) {
        self.index = index
        self.word = word
    }
}
