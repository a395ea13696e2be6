// SPDX-License-Identifier: Apache-2.0

package import Platform

/// What all processes have to know of the stores on other machines.
extension Control {
    /// What writers note; nothing also where there is no control file.
    package var remoteNotes: RemoteNotes {
        writableWords.flatMap { RemoteNotes(rawValue: $0.load(.remoteNotes)) } ?? .nothing
    }

    /// False: there is no control file that could be written.
    package func setRemoteNotes(_ notes: RemoteNotes) -> Bool {
        guard let words = countingWords else { return false }
        if words.load(.remoteNotes) != notes.rawValue { words.store(notes.rawValue, at: .remoteNotes) }
        return true
    }

    /// What was created before this moment is not taken from other machines.
    package var remoteBarrier: Timestamp {
        Timestamp(milliseconds: Int64(clamping: words?.load(.remoteBarrier) ?? 0))
    }

    /// Has nothing taken from other machines that was created before `moment`.
    package func raiseRemoteBarrier(to moment: Timestamp) {
        guard let words = writableWords else { return }
        let raised = UInt64(max(0, moment.milliseconds))
        while true {
            let present = words.load(.remoteBarrier)
            if present >= raised || words.replace(present, by: raised, at: .remoteBarrier) { return }
        }
    }

    // MARK: Servers

    /// The word of the breaker of a server; nil: there is no control file that could be written.
    ///
    /// - Parameter name: its name, hashed; not 0.
    package func breaker(ofServer name: UInt64) -> UInt64? {
        writableWords.map { $0.load(Self.breakerPlace(of: name, in: $0)) }
    }

    /// False: it is another word now.
    package func replaceBreaker(ofServer name: UInt64, _ expected: UInt64, by word: UInt64) -> Bool {
        guard let words = writableWords else { return true }
        return words.replace(expected, by: word, at: Self.breakerPlace(of: name, in: words))
    }

    /// Claims a word for a name that has none; where all are claimed it shares one.
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
