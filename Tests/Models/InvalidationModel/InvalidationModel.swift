// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of the rules that remove many values in one step (`RemovalRules`).
///
/// A process puts values under one key, one after the other, and reads the key, from memory or from disk; another makes
/// rules that apply to all existing values; a collection deletes the entries that the rules apply to and retires the
/// rules. In a variant two writers put at the same time, and there is one rule. One step is one system call or one atomic
/// operation, sequentially consistent; the maker of rules and the collection may die before each step. Each reading of
/// the clock returns one of two times, arbitrarily.
///
/// The generation only grows, so a state records only which participants have the current one: an older generation never
/// becomes current again.
///
/// The model checks that a read that begins after a rule has come into force gets no value whose put had ended before
/// the rule was started; that a value that a read has missed is not read again; and that a value whose put began when no
/// rule was being made is found until the next one is started.
enum InvalidationModel {
    /// A deviation from the protocol that must be found.
    enum Mistake: UInt8, CaseIterable {
        /// A rule counts as soon as it is in the file, whatever the word contains.
        case countedByFile
        /// The word counts the rule before it is in the file.
        case wordBeforeFile
        /// The control file stays ready while a rule comes into force.
        case neverClosed
        /// The generation is raised after the rule is in force, and the file stays ready.
        case raisedAfterwards
        /// The generation is not raised.
        case neverRaised
        /// A reader keeps the value that it reads although the file was not ready.
        case readinessUnchecked
        /// A reader reads the rules after the record.
        case rulesAfterRecord
        /// A put notes no number, so only its time decides whether a rule applies.
        case numberNotNoted
        /// A rule applies to entries created up to now, by its own clock alone.
        case latestIgnored
        /// A put keeps its value in memory although a rule has come into force in the meantime.
        case keptDespiteRule
        /// A collection does not wait for puts that are active when it begins.
        case noBarrier
        /// A collection retires rules that were made after it began.
        case retiredLater
        /// A collection retires rules before it checks the entry.
        case retiredBefore
        /// When a collection retires rules, an unfinished rule comes into force.
        case retiredIntoForce
        /// A process that finds a file forming because of an unfinished rule does not raise the generations, and the rule is
        /// in force before they are raised.
        case healedUnraised
        /// A put does not wait for another one that may have read the rules before the latest was made.
        case besideAnother

        /// The number of concurrent writers with which it is found.
        var writers: Int { self == .besideAnother ? 2 : 1 }
    }

    /// The last completed step of a put.
    enum PutStep: UInt8 { case idle, stamped, looked, locked, numbered, written }
    /// The next step of a rule's maker.
    enum RuleStep: UInt8 { case idle, file, close, raise, word, ready }
    enum ReadStep: UInt8 { case idle, memory, word, state, rules, record }
    enum Collection: UInt8 { case idle, begun, passed, looked }

    /// The entry, or a value in memory, with the number of its put, or 0 if there is none.
    struct Entry: Hashable {
        var put: UInt8 = 0
        var created: UInt8 = 0
        /// The number of rules that do not apply to it.
        var number: UInt8 = 0
    }

    struct Writer: Hashable {
        var step = PutStep.idle
        var entry = Entry()
        /// The rules' word as read under the stripe lock.
        var number: UInt8 = 0
        /// Whether the generation has not been raised since.
        var isLatest = false
        /// Whether it holds the stripe exclusively or waits to.
        var isAlone = false
        /// Whether no rule was being made when it began, and none has been started since.
        var isUndisturbed = false

        /// Whether it counts as a writer in the key's word, and holds its stripe.
        var isWriting: Bool { step.rawValue >= PutStep.locked.rawValue }
    }

    struct Maker: Hashable {
        var step = RuleStep.idle
        /// The puts that had ended when it began, as a bit mask.
        var meant: UInt8 = 0
    }

    struct Reader: Hashable {
        var step = ReadStep.idle
        /// Whether the generation has not been raised since it read the word.
        var isLatest = false
        var mayKeep = false
        /// The rules that apply to it, as a bit mask; and the entry, if that was read first.
        var rules: UInt8 = 0
        var entry = Entry()
        /// The state when it began: puts that had ended and puts that it must not see, as bit masks; whether it must find
        /// a value.
        var ended: UInt8 = 0
        var gone: UInt8 = 0
        var mustFind = false
    }

    struct Collector: Hashable {
        var step = Collection.idle
        var rules: UInt8 = 0
    }

    struct State: FlatState {
        var disk = Entry()
        /// The number of rules that the file has had, and a bit mask of the retired ones.
        var made: UInt8 = 0
        var retired: UInt8 = 0
        /// The latest creation time that each rule applies to.
        var latest: InlineArray<2, UInt8> = [0, 0]
        /// Words of the control file: the number of rules in force, the latest time that they apply to, the latest creation
        /// time of any entry, and whether the file is ready.
        var inForce: UInt8 = 0
        var latestRule: UInt8 = 0
        var latestCreated: UInt8 = 0
        var isReady = true
        /// The value held under the current generation; a value under an older one is as good as missing.
        var memory = Entry()
        var puts: UInt8 = 0
        /// The second one is idle in the variant with one writer.
        var writers: InlineArray<2, Writer> = [Writer(), Writer()]
        var maker = Maker()
        var reader = Reader()
        var collector = Collector()
        /// Puts that have ended, and puts that a read that begins now must not see.
        var ended: UInt8 = 0
        var gone: UInt8 = 0
        /// Whether a put has ended that began when no rule was being made, and no rule has been started since.
        var mustFind = false
        var isBroken = false

        /// Whether a put holds the stripe.
        var isWriting: Bool { writers[0].isWriting || writers[1].isWriting }
    }

    /// A move; a move that reads the clock has the time as its value.
    enum Move { case put(Int, UInt8), rule(UInt8), crashOfRule, heal, read, collect, crashOfCollection }

    static let mostPuts: UInt8 = 2
    static let mostRules: UInt8 = 2

    struct Model {
        let mistake: Mistake?
        /// The number of concurrent writers.
        let writers: Int

        /// With two writers the limit is one rule, because there would be too many states.
        var mostRules: UInt8 { writers == 1 ? InvalidationModel.mostRules : 1 }
    }
}

extension InvalidationModel.State {
    /// Raises the generation, which drops all values held under the old one.
    mutating func raiseGeneration() {
        memory = InvalidationModel.Entry()
        for writer in writers.indices { writers[writer].isLatest = false }
        reader.isLatest = false
    }

    /// Returns the file's rules up to a number, without the retired ones.
    func rules(upTo number: UInt8) -> UInt8 {
        (1 << min(number, made) - 1) & ~retired
    }

    /// Whether one of these rules applies to an entry.
    func isMeant(_ entry: InvalidationModel.Entry, by rules: UInt8) -> Bool {
        (0..<InvalidationModel.mostRules).contains { rule in
            rules & (1 << rule) != 0 && rule + 1 > entry.number && entry.created <= latest[Int(rule)]
        }
    }
}

extension InvalidationModel.Model: ExploredModel {
    typealias State = InvalidationModel.State
    typealias Move = InvalidationModel.Move

    var initialStates: [State] { [State()] }

    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        if state.isBroken { return }
        func add(_ move: Move, _ advance: (inout State) -> Bool) {
            var copy = state
            guard advance(&copy) else { return }
            next.append(copy)
            moves.append(move)
        }
        for writer in 0..<writers {
            add(.put(writer, 0)) { advancePut(by: writer, at: 0, in: &$0) }
            if state.writers[writer].step == .idle {
                add(.put(writer, 1)) { advancePut(by: writer, at: 1, in: &$0) }
            }
        }
        add(.rule(0)) { advanceRule(at: 0, in: &$0) }
        if state.maker.step == .file { add(.rule(1)) { advanceRule(at: 1, in: &$0) } }
        add(.crashOfRule) { state in
            guard state.maker.step != .idle else { return false }
            state.maker = InvalidationModel.Maker()
            return true
        }
        add(.heal) { state in
            // Under the lock of the rules' maker.
            guard !state.isReady, state.maker.step == .idle else { return false }
            state.isReady = true
            return true
        }
        add(.read) { advanceRead(in: &$0) }
        add(.collect) { advanceCollection(in: &$0) }
        add(.crashOfCollection) { state in
            guard state.collector.step != .idle else { return false }
            state.collector = InvalidationModel.Collector()
            return true
        }
    }

    func line(for move: Move, from before: State, to after: State) -> String {
        "\(move)  => \(summary(of: after))"
    }

    func summary(of state: State) -> String {
        """
        disk \(state.disk), memory \(state.memory), \(state.isReady ? "ready" : "forming"), \
        rules \(state.made) to \(state.latest[0]), \(state.latest[1]), in force \(state.inForce), retired \(state.retired), puts \(state.writers[0].step), \(state.writers[1].step), rule \(state.maker.step), \
        read \(state.reader.step), collection \(state.collector.step), gone \(state.gone)
        """
    }
}

extension InvalidationModel.Model {
    /// Visits all states until one breaks a promise.
    func explore() -> Exploration<State> {
        StateSpace.explore(self) { $0.isBroken }
    }
}
