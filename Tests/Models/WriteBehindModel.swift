// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of a put in the background beside other writers of its key (`Store.isLatest(_:)`).
///
/// The put notes its key's word, adds itself to it, writes, and ends; its write may fail once, and is then retried with
/// the word that was noted first. Three other writers begin, write and end, each a put or a removal; a writer that takes
/// no further step was killed. A sweep may clear their count in the word while no writer holds the stripe's lock. One
/// step is one atomic operation or one system call; steps are sequentially consistent.
///
/// Until the put's end is noted, a get in its process returns the value if the word shows that it is the latest. The
/// model checks that this never happens after the value was on disk, where every process could read it, and was
/// replaced by another writer's.
enum WriteBehindModel {
    /// A deviation from the protocol that must be found.
    enum Mistake: UInt8, CaseIterable {
        /// A writer that has begun is treated as the put itself, although another one was writing before.
        case begunBesideOthers
        /// A writer that has ended is treated as the put itself, although another one was writing before.
        case endedBesideOthers
        /// The word is not checked.
        case wordUnchecked
        /// A sweep removes the killed writers and leaves the version.
        case clearedWithoutVersion
    }

    struct Word: Hashable {
        var version: UInt8 = 0
        var writers: UInt8 = 0

        mutating func begin() { writers += 1 }
        mutating func end() { (version, writers) = (version + 1, writers - 1) }
    }

    enum Value: UInt8 { case old, own, others }
    enum OwnStep: UInt8 { case note, begin, write, end, noteEnd, over }
    enum OtherStep: UInt8 { case begin, write, end, over }

    struct State: Hashable {
        var word = Word()
        var disk = Value.old
        var own = OwnStep.note
        var noted: Word?
        var hasFailed = false
        var wasOnDisk = false
        var others = [OtherStep.begin, .begin, .begin]
    }

    enum Move { case own, failure, other(Int), sweep }

    struct Model {
        let mistake: Mistake?

        /// Returns the result of `Store.isLatest(_:)`.
        private func isLatest(_ noted: Word, _ now: Word) -> Bool {
            if mistake == .wordUnchecked || now == noted { return true }
            var begun = noted
            begun.begin()
            var ended = begun
            ended.end()
            return now == begun && (noted.writers == 0 || mistake == .begunBesideOthers)
                || now == ended && (noted.writers == 0 || mistake == .endedBesideOthers)
        }

        /// Whether a get in the put's process returns the value now.
        func isGivenOut(in state: State) -> Bool {
            guard state.own != .over else { return false }
            guard let noted = state.noted else { return true }
            return isLatest(noted, state.word)
        }

        func isBroken(_ state: State) -> Bool {
            state.wasOnDisk && state.disk != .own && isGivenOut(in: state)
        }
    }
}

extension WriteBehindModel.Model: ExploredModel {
    typealias State = WriteBehindModel.State
    typealias Move = WriteBehindModel.Move

    var initialStates: [State] { [State()] }

    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        func add(_ move: Move, _ advance: (inout State) -> Void) {
            var copy = state
            advance(&copy)
            next.append(copy)
            moves.append(move)
        }
        if state.own != .over { add(.own) { advanceOwn(in: &$0) } }
        if state.own == .write, !state.hasFailed {
            add(.failure) { state in
                state.word.end()
                state.hasFailed = true
                state.own = .note
            }
        }
        for index in state.others.indices where state.others[index] != .over {
            add(.other(index)) { advanceOther(index, in: &$0) }
        }
        if state.word.writers > 0, ![.begin, .write, .end].contains(state.own) {
            add(.sweep) { sweep(in: &$0) }
        }
    }

    private func advanceOwn(in state: inout State) {
        switch state.own {
        case .note:
            state.noted = state.noted ?? state.word
            state.own = .begin
        case .begin:
            state.word.begin()
            state.own = .write
        case .write:
            state.disk = .own
            state.wasOnDisk = true
            state.own = .end
        case .end:
            state.word.end()
            state.own = .noteEnd
        case .noteEnd, .over: state.own = .over
        }
    }

    private func advanceOther(_ index: Int, in state: inout State) {
        switch state.others[index] {
        case .begin:
            state.word.begin()
            state.others[index] = .write
        case .write:
            state.disk = .others
            state.others[index] = .end
        case .end, .over:
            state.word.end()
            state.others[index] = .over
        }
    }

    /// Clears the word under the exclusive lock: writers that are still counted were killed.
    private func sweep(in state: inout State) {
        state.word.writers = 0
        if mistake != .clearedWithoutVersion { state.word.version += 1 }
        for index in state.others.indices where [.write, .end].contains(state.others[index]) {
            state.others[index] = .over
        }
    }

    func line(for move: Move, from before: State, to after: State) -> String {
        "\(move)  => \(summary(of: after))"
    }

    func summary(of state: State) -> String {
        "disk \(state.disk), word \(state.word), own put: \(state.own), noted \(state.noted.map { "\($0)" } ?? "nothing")"
    }
}

extension WriteBehindModel.Model {
    /// Visits all states until one breaks a promise.
    func explore() -> Exploration<State> {
        StateSpace.explore(self, until: isBroken)
    }
}
