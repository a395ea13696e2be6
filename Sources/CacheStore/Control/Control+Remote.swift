// SPDX-License-Identifier: Apache-2.0

import Platform

/// State of the remote stores that all processes share.
extension Control {
    /// Whether writers record their changes in the outbox; also false if there is no writable control file.
    package var notesChanges: Bool { writableWords.map { $0.load(.notesChanges) != 0 } ?? false }

    /// Sets ``notesChanges``, if there is a writable control file.
    func setNotesChanges(_ isOn: Bool) {
        guard let words = countingWords, isOn != (words.load(.notesChanges) != 0) else { return }
        words.store(isOn ? 1 : 0, at: .notesChanges)
    }

    // MARK: Servers

    /// Returns the word of a server's circuit breaker; nil if there is no writable control file.
    ///
    /// - Parameter name: The hash of the server's name; not 0.
    package func breaker(ofServer name: UInt64) -> UInt64? {
        writableWords.map { $0.load(Self.breakerPlace(of: name, in: $0)) }
    }

    /// Replaces the word of a server's circuit breaker; returns false if it is no longer `expected`.
    ///
    /// Returns true, without an effect, if there is no writable control file.
    package func replaceBreaker(ofServer name: UInt64, _ expected: UInt64, by word: UInt64) -> Bool {
        guard let words = writableWords else { return true }
        return words.replace(expected, by: word, at: Self.breakerPlace(of: name, in: words))
    }

    /// Returns the place of a server's circuit breaker.
    ///
    /// Assigns a free place to a name that has none. If no place is free, the server shares a place with others.
    private static func breakerPlace(of name: UInt64, in words: MappedWords) -> Int {
        for index in 0..<ControlLayout.serverCount {
            let place = ControlLayout.servers + index
            if words.load(place) == 0 { _ = words.replace(0, by: name, at: place) }
            if words.load(place) == name { return place + ControlLayout.serverCount }
        }
        let index = Int(name % UInt64(ControlLayout.serverCount))
        return ControlLayout.servers + ControlLayout.serverCount + index
    }
}
