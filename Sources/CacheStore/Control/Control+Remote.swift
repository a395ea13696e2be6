// SPDX-License-Identifier: Apache-2.0

package import Platform

/// State of the remote stores that all processes share.
extension Control {
    /// Which keys writers record in the outbox; also `nothing` if there is no writable control file.
    package var remoteNotes: RemoteNotes {
        writableWords.flatMap { RemoteNotes(rawValue: $0.load(.remoteNotes)) } ?? .nothing
    }

    /// Sets ``remoteNotes``; returns false if there is no writable control file.
    package func setRemoteNotes(_ notes: RemoteNotes) -> Bool {
        guard let words = countingWords else { return false }
        if words.load(.remoteNotes) != notes.rawValue { words.store(notes.rawValue, at: .remoteNotes) }
        return true
    }

    /// The creation time before which remote entries are ignored.
    package var remoteBarrier: Timestamp {
        Timestamp(milliseconds: Int64(clamping: words?.load(.remoteBarrier) ?? 0))
    }

    /// Raises ``remoteBarrier`` to `moment`: remote entries that were created before it are not used.
    ///
    /// It also raises the barrier above each creation time that was passed to ``noteRemote(created:)``.
    package func raiseRemoteBarrier(to moment: Timestamp) {
        guard let words = writableWords else { return }
        let latest = words.load(.latestRemote)
        let beyond = latest == 0 ? 0 : latest &+ 1
        raise(.remoteBarrier, to: max(UInt64(max(0, moment.milliseconds)), beyond), in: words)
    }

    /// Records that a remote value was found whose creation time is ahead of this machine's clock.
    ///
    /// The clock of the machine that created the value differs from this one's. Without this record, a barrier at this
    /// machine's present time would not cover the value. This is the rule of a hybrid logical clock: an event is later than
    /// all events that were seen before it (Kulkarni et al., "Logical Physical Clocks", 2014).
    package func noteRemote(created: Timestamp) {
        guard let words = writableWords else { return }
        raise(.latestRemote, to: UInt64(max(0, created.milliseconds)), in: words)
    }

    private func raise(_ word: ControlWord, to value: UInt64, in words: MappedWords) {
        while true {
            let present = words.load(word)
            if present >= value || words.replace(present, by: value, at: word) { return }
        }
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
