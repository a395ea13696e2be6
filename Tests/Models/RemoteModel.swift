// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of the adoption of values from another machine's store beside writers of the key
/// (`Store.absence(of:now:)`, `Store.adopt`, `Store.note`) and beside the sender of changes (`OutboxSender`).
///
/// Initially the store has an old value, and the disk has the same value or none. One writer puts a new value; after it
/// has returned, a second one removes it. Each notes the key in the outbox and then changes the entry, with the stripe
/// held shared, as a writer in the key's word. The sender waits until it has held the stripe exclusively, reads the
/// entry, updates the store's value to it, and strikes out the note that it started with. The disk may evict the entry
/// once, which no word shows. A reader that finds nothing on disk asks the store and puts the answer on disk. A
/// participant that takes no further step was killed or is slow.
///
/// Once, the sender gives up a request without an answer. The store may still carry it out, within a known time. The
/// sender notes a doubt about the key, separate from the writers' notes. After that time it reads the entry and updates
/// the store's value again, and only then removes the doubt. Until then a reader does not ask the store.
///
/// The model checks that no value older than the last change that has returned is on disk or is returned to a reader
/// that began later.
enum RemoteModel {
    /// A deviation from the protocol that must be found.
    enum Mistake: UInt8, CaseIterable {
        /// The answer is put on disk whatever has happened in the meantime.
        case wordUnchecked
        /// The word is read after the store has answered.
        case wordReadLate
        /// The store is asked even if a change of the key is still pending.
        case outboxUnchecked
        /// The outbox is checked before the word is read.
        case outboxCheckedEarly
        /// Writers note their keys after everything else.
        case notedLate
        /// The sender reads the entry beside writers that have noted it.
        case noBarrier
        /// The sender strikes out any note of the key.
        case struckWithoutNumber
        /// The sender notes no doubt.
        case doubtUnnoted
        /// Readers check only the writers' notes.
        case doubtUnread
        /// The doubt is removed with the next note that is struck out.
        case doubtOfNote
        /// The doubt is removed when its time is over, without another request.
        case doubtNotSentAgain
    }

    /// Values by rank: a value that a writer has left must not be replaced by one of a lower rank.
    enum Value: UInt8, Comparable {
        case old, new, gone

        static func < (one: Value, other: Value) -> Bool { one.rawValue < other.rawValue }
    }

    enum WriterStep: UInt8 { case note, begin, change, end, noteLate, over }
    enum SenderStep: UInt8 { case idle, wait, read, tell, strike }
    enum Doubt: UInt8 { case none, inTime, over }
    enum ReaderStep: UInt8 { case start, word, disk, outbox, ask, adopt, over }

    struct Word: Hashable {
        var version: UInt8 = 0
        var writers: UInt8 = 0
    }

    struct Reader: Hashable {
        var step = ReaderStep.start
        /// The oldest value that it may get.
        var floor = Value.old
        var word: Word?
        var answer: Value?
    }

    struct State: Hashable {
        var word = Word()
        var disk: Value
        var store = Value.old
        /// The latest note that is not struck out, by its writer's number, from 1; 0 if none.
        var noted: UInt8 = 0
        var writers = [WriterStep.note, .note]
        var sender = SenderStep.idle
        var sending: UInt8 = 0
        var settled = Value.gone
        /// The unanswered request that the store may still carry out.
        var late: Value?
        var hasGivenUp = false
        var doubt = Doubt.none
        var reader = Reader()
        var wasEvicted = false

        /// The value left by the writers that have returned.
        var floor: Value { writers[1] == .over ? .gone : writers[0] == .over ? .new : .old }
    }

    enum Move { case writer(Int), sender, givingUp, lateRequest, time, reader, eviction }

    struct Model {
        let mistake: Mistake?

        func isBroken(_ state: State) -> Bool {
            if state.disk != .gone, state.disk < state.floor { return true }
            guard state.reader.step == .over, let answer = state.reader.answer else { return false }
            return answer != .gone && answer < state.reader.floor
        }
    }
}

extension RemoteModel.Model: ExploredModel {
    typealias State = RemoteModel.State
    typealias Move = RemoteModel.Move

    var initialStates: [State] { [State(disk: .gone), State(disk: .old)] }

    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        func add(_ move: Move, _ advance: (inout State) -> Void) {
            var copy = state
            advance(&copy)
            guard copy != state else { return }
            next.append(copy)
            moves.append(move)
        }
        add(.writer(0)) { advanceWriter(0, in: &$0) }
        // The second writer begins after the first has returned.
        if state.writers[0] == .over { add(.writer(1)) { advanceWriter(1, in: &$0) } }
        add(.sender) { advanceSender(in: &$0) }
        if state.sender == .tell, !state.hasGivenUp { add(.givingUp) { giveUp(in: &$0) } }
        if let late = state.late {
            add(.lateRequest) { state in
                state.store = late
                state.late = nil
            }
        } else if state.doubt == .inTime {
            add(.time) { $0.doubt = mistake == .doubtNotSentAgain ? .none : .over }
        }
        add(.reader) { advanceReader(in: &$0) }
        if !state.wasEvicted, state.disk != .gone {
            add(.eviction) { state in
                state.disk = .gone
                state.wasEvicted = true
            }
        }
    }

    private func advanceWriter(_ index: Int, in state: inout State) {
        switch state.writers[index] {
        case .note:
            if mistake != .notedLate { state.noted = UInt8(index + 1) }
            state.writers[index] = .begin
        case .begin:
            state.word.writers += 1
            state.writers[index] = .change
        case .change:
            state.disk = index == 0 ? .new : .gone
            state.writers[index] = .end
        case .end:
            state.word.writers -= 1
            state.word.version += 1
            state.writers[index] = mistake == .notedLate ? .noteLate : .over
        case .noteLate:
            state.noted = UInt8(index + 1)
            state.writers[index] = .over
        case .over: break
        }
    }

    /// Whether a writer holds the stripe shared.
    private func isStripeHeld(_ state: State) -> Bool {
        state.writers.contains { [.begin, .change, .end].contains($0) }
    }

    private func advanceSender(in state: inout State) {
        switch state.sender {
        case .idle:
            guard state.noted != 0 || state.doubt == .over else { return }
            // 0 if it sends because of a doubt.
            state.sending = state.noted
            state.sender = .wait
        case .wait:
            // A writer without a note so far is handled later.
            if mistake == .noBarrier || !isStripeHeld(state) { state.sender = .read }
        case .read:
            state.settled = state.disk
            state.sender = .tell
        case .tell:
            state.store = state.settled
            state.sender = .strike
        case .strike:
            if state.sending == 0 || mistake == .doubtOfNote { state.doubt = .none }
            if state.noted == state.sending || mistake == .struckWithoutNumber { state.noted = 0 }
            rest(&state)
        }
    }

    /// Ends a request without an answer.
    private func giveUp(in state: inout State) {
        state.late = state.settled
        state.hasGivenUp = true
        if mistake != .doubtUnnoted { state.doubt = .inTime }
        rest(&state)
    }

    private func rest(_ state: inout State) {
        (state.sending, state.settled, state.sender) = (0, .gone, .idle)
    }

    private func advanceReader(in state: inout State) {
        var reader = state.reader
        switch reader.step {
        case .start:
            reader.floor = state.floor
            reader.step = mistake == .outboxCheckedEarly ? .outbox : .word
        case .word:
            guard state.word.writers == 0 else { return end(&state, with: .gone) }
            reader.word = state.word
            reader.step = .disk
        case .disk:
            if state.disk != .gone { return end(&state, with: state.disk) }
            reader.step = mistake == .outboxCheckedEarly ? .ask : .outbox
        case .outbox:
            let isNoted = state.noted != 0 || state.doubt != .none && mistake != .doubtUnread
            if isNoted, mistake != .outboxUnchecked { return end(&state, with: .gone) }
            reader.step = mistake == .outboxCheckedEarly ? .word : .ask
        case .ask:
            if state.store == .gone { return end(&state, with: .gone) }
            reader.answer = state.store
            if mistake == .wordReadLate { reader.word = state.word }
            reader.step = .adopt
        case .adopt:
            // With the stripe held exclusively.
            if isStripeHeld(state) { return }
            let isSame = reader.word == state.word && state.disk == .gone
            if isSame || mistake == .wordUnchecked {
                state.disk = reader.answer ?? .gone
            } else {
                reader.answer = state.disk
            }
            reader.step = .over
        case .over: return
        }
        state.reader = reader
    }

    private func end(_ state: inout State, with answer: RemoteModel.Value) {
        state.reader.answer = answer
        state.reader.step = .over
    }

    func line(for move: Move, from before: State, to after: State) -> String {
        "\(move)  => \(summary(of: after))"
    }

    func summary(of state: State) -> String {
        "disk \(state.disk), store \(state.store), noted \(state.noted), word \(state.word), writers \(state.writers), "
            + "sender \(state.sender), late \(state.late.map { "\($0)" } ?? "none"), doubt \(state.doubt), reader \(state.reader)"
    }
}

extension RemoteModel.Model {
    /// Visits all states until one breaks a promise.
    func explore() -> Exploration<State> {
        StateSpace.explore(self, until: isBroken)
    }
}
