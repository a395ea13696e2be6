// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of the outbox, the file of changes pending for other machines (`OutboxFile`), while a shorter
/// file replaces it.
///
/// Two appenders each open the file that has the name, append a record and check whether the file still has the name; if
/// not, they start again. One sender at a time replaces the file, at most twice: it reads the file, links it to a second
/// name, renames the new file over it, appends the records that the old one has received since, together with a mark of
/// completion, and removes the second name. It may be killed before each step; the next sender completes the
/// replacement. A reader reads the file, and its predecessor if there is no mark.
///
/// The model checks that the records of appenders that have returned are always in one of the files that are read, and
/// that a reader finds all records appended before it started.
enum OutboxModel {
    /// A deviation from the protocol that must be found.
    enum Mistake: UInt8, CaseIterable {
        /// The old file gets no second name: only a process that has it open can carry over its records.
        case unnamed
        /// The new file is marked as complete from the beginning.
        case markedEarly
        /// The second name is removed before the remaining records are appended.
        case unlinkedEarly
        /// The next sender replaces the file without completing its predecessor's replacement.
        case carryOverSkipped
        /// Appenders do not check whether the file has lost its name.
        case appenderUnchecked
        /// Readers skip the preceding file.
        case predecessorUnread
        /// Readers treat any file with the second name as the preceding one.
        case readerUnchecked
    }

    enum AppenderStep: UInt8 { case open, write, check, over }
    enum SenderStep: UInt8 { case idle, unlinkStale, link, rename, readRest, unlinkEarly, append, unlink }
    enum ReaderStep: UInt8 { case start, open, read, readBefore, check, over }

    struct Appender: Hashable {
        var step = AppenderStep.open
        var file = 0
    }

    struct Sender: Hashable {
        var step = SenderStep.idle
        /// The records that it has read from the file that it replaces, by the appenders' bits.
        var seen: UInt8 = 0
        var rest: UInt8 = 0
        /// The file that it replaces.
        var file = 0
    }

    struct File: Hashable {
        /// The appended records, by the appenders' bits.
        var records: UInt8 = 0
        /// Whether the preceding file must be read as well.
        var isIncomplete = false
    }

    struct Reader: Hashable {
        var step = ReaderStep.start
        var file = 0
        var read = File()
        var found: UInt8 = 0
        /// The records that it must find.
        var floor: UInt8 = 0
    }

    struct State: Hashable {
        var files = [File(), File(), File()]
        /// The file that has the name.
        var named = 0
        /// The file that has the second name, if any.
        var before: Int?
        var appenders = [Appender(), Appender()]
        var sender = Sender()
        var reader = Reader()

        /// The records of the appenders that have returned.
        var returned: UInt8 {
            appenders.enumerated().reduce(0) { $1.element.step == .over ? $0 | 1 << UInt8($1.offset) : $0 }
        }
    }

    enum Move { case appender(Int), sender, kill, reader }

    struct Model {
        let mistake: Mistake?

        func isBroken(_ state: State) -> Bool {
            var kept = state.files[state.named].records
            if state.files[state.named].isIncomplete, let before = state.before {
                kept |= state.files[before].records
            }
            // Without a name the file exists as long as its sender lives.
            if mistake == .unnamed, state.sender.step != .idle {
                kept |= state.files[state.sender.file].records
            }
            if state.returned & ~kept != 0 { return true }
            return state.reader.step == .over && state.reader.floor & ~state.reader.found != 0
        }
    }
}

extension OutboxModel.Model: ExploredModel {
    typealias State = OutboxModel.State
    typealias Move = OutboxModel.Move

    var initialStates: [State] { [State()] }

    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        func add(_ move: Move, _ advance: (inout State) -> Void) {
            var copy = state
            advance(&copy)
            guard copy != state else { return }
            next.append(copy)
            moves.append(move)
        }
        for index in state.appenders.indices { add(.appender(index)) { advanceAppender(index, in: &$0) } }
        add(.sender) { advanceSender(in: &$0) }
        add(.kill) { $0.sender = OutboxModel.Sender() }
        add(.reader) { advanceReader(in: &$0) }
    }

    private func advanceAppender(_ index: Int, in state: inout State) {
        var appender = state.appenders[index]
        switch appender.step {
        case .open:
            appender.file = state.named
            appender.step = .write
        case .write:
            state.files[appender.file].records |= 1 << UInt8(index)
            appender.step = mistake == .appenderUnchecked ? .over : .check
        case .check: appender.step = appender.file == state.named ? .over : .open
        case .over: return
        }
        state.appenders[index] = appender
    }

    private func advanceSender(in state: inout State) {
        var sender = state.sender
        let named = state.named
        switch sender.step {
        case .idle:
            if state.files[named].isIncomplete, mistake != .carryOverSkipped {
                sender.file = state.before ?? named
                sender.step = .readRest
            } else if named + 1 < state.files.count {
                (sender.seen, sender.file) = (state.files[named].records, named)
                sender.step = .unlinkStale
            }
        case .unlinkStale:
            state.before = nil
            sender.step = mistake == .unnamed ? .rename : .link
        case .link:
            state.before = named
            sender.step = .rename
        case .rename:
            state.named = named + 1
            state.files[named + 1].records = sender.seen
            state.files[named + 1].isIncomplete = mistake != .markedEarly
            sender.step = .readRest
        case .readRest:
            let file = mistake == .unnamed ? sender.file : state.before
            sender.rest = file.map { state.files[$0].records } ?? 0
            sender.step = mistake == .unlinkedEarly ? .unlinkEarly : .append
        case .unlinkEarly:
            state.before = nil
            sender.step = .append
        case .append:
            state.files[named].records |= sender.rest
            state.files[named].isIncomplete = false
            sender.step = .unlink
        case .unlink:
            state.before = nil
            sender = OutboxModel.Sender()
        }
        state.sender = sender
    }

    private func advanceReader(in state: inout State) {
        var reader = state.reader
        switch reader.step {
        case .start:
            reader.floor = state.returned
            reader.step = .open
        case .open:
            reader.file = state.named
            reader.step = .read
        case .read:
            reader.read = state.files[reader.file]
            reader.found = reader.read.records
            let isDone = !reader.read.isIncomplete || mistake == .predecessorUnread
            reader.step = isDone ? .over : .readBefore
        case .readBefore:
            if let before = state.before {
                // In any other file the bytes after the offset mean nothing.
                if before == reader.file - 1 { reader.found |= state.files[before].records }
                reader.step = mistake == .readerUnchecked ? .over : .check
            } else {
                reader.step = .open
            }
        case .check:
            let isSame = state.named == reader.file && state.files[state.named] == reader.read
            reader.step = isSame ? .over : .open
        case .over: return
        }
        state.reader = reader
    }

    func line(for move: Move, from before: State, to after: State) -> String {
        "\(move)  => \(summary(of: after))"
    }

    func summary(of state: State) -> String {
        "files \(state.files), named \(state.named), before \(state.before.map(String.init) ?? "none"), "
            + "appenders \(state.appenders), sender \(state.sender), reader \(state.reader)"
    }
}

extension OutboxModel.Model {
    /// Visits all states until one breaks a promise.
    func explore() -> Exploration<State> {
        StateSpace.explore(self, until: isBroken)
    }
}
