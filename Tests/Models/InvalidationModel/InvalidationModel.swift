// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of the rules by which many values are removed in one step (`RemovalRules`).
///
/// A process puts values under one key, one after the other, and reads it, from memory or from disk; another makes rules
/// that are meant for all that is there; a collection deletes what they are meant for and takes them off. Or two put at
/// the same time, and there is one rule. One step is one system call or one atomic operation, sequentially consistent; the
/// maker of rules and the collection may die before each. The clock shows one of two times at each look, as it likes.
///
/// Of the generation, which only grows, a state says who still has it as it is now: whoever has an older one never has
/// the latest again.
///
/// What is checked: a read that begins after a rule has been put in force gets no value whose put had ended before that
/// rule was begun; a value that a read has missed is not read again; and a value whose put began when no rule was under
/// way is found until the next one is begun.
enum InvalidationModel {
    /// A deviation from the protocol that must be found.
    enum Mistake: UInt8, CaseIterable {
        /// A rule counts as soon as the file has it, whatever the word says.
        case countedByFile
        /// The word has the rule before the file does.
        case wordBeforeFile
        /// The control file stays ready while a rule is put in force.
        case neverClosed
        /// The generation is raised after the rule is in force, and the file stays ready.
        case raisedAfterwards
        /// It is not raised.
        case neverRaised
        /// A reader keeps what it reads although the file was not ready.
        case readinessUnchecked
        /// A reader asks for the rules after it has read the record.
        case rulesAfterRecord
        /// A put notes no number, so that its time alone tells.
        case numberNotNoted
        /// A rule is meant for what was created up to now by its own clock.
        case latestIgnored
        /// A put keeps its value in memory although a rule has come meanwhile.
        case keptDespiteRule
        /// A collection does not wait for puts that are under way when it begins.
        case noBarrier
        /// A collection takes off rules that have come since it began.
        case retiredLater
        /// It takes them off before it looks at the entry.
        case retiredBefore
        /// As it takes them off, a rule that was never finished comes into force.
        case retiredIntoForce
        /// Who finds a file that is forming by a rule that was never finished leaves the generations as they are, and the
        /// rule is in force before they are raised.
        case healedUnraised
        /// A put does not wait for another that may have asked for the rules before the latest came.
        case besideAnother

        /// How many put at the same time where it is found.
        var writers: Int { self == .besideAnother ? 2 : 1 }
    }

    /// What a put has done.
    enum PutStep: UInt8 { case idle, stamped, looked, locked, numbered, written }
    /// What the maker of a rule does next.
    enum RuleStep: UInt8 { case idle, file, close, raise, word, ready }
    enum ReadStep: UInt8 { case idle, memory, word, state, rules, record }
    enum Collection: UInt8 { case idle, begun, passed, looked }

    /// The entry, or a value in memory: which put it is of, 0 for none.
    struct Entry: Hashable {
        var put: UInt8 = 0
        var created: UInt8 = 0
        /// The number of the rules that are not meant for it.
        var number: UInt8 = 0
    }

    struct Writer: Hashable {
        var step = PutStep.idle
        var entry = Entry()
        /// The rules' word when it had the stripe.
        var number: UInt8 = 0
        /// Whether nobody has raised the generation since.
        var isLatest = false
        /// Whether it has the stripe exclusively, or waits for it so.
        var isAlone = false
        /// Whether it began when no rule was under way, and none has begun since.
        var isUndisturbed = false

        /// Whether it counts as a writer in the key's word, and holds its stripe.
        var isWriting: Bool { step.rawValue >= PutStep.locked.rawValue }
    }

    struct Maker: Hashable {
        var step = RuleStep.idle
        /// Puts that had ended when it began, a bit each.
        var meant: UInt8 = 0
    }

    struct Reader: Hashable {
        var step = ReadStep.idle
        /// Whether nobody has raised the generation since it read the word.
        var isLatest = false
        var mayKeep = false
        /// The rules that count for it, a bit each; and the entry, where it was read first.
        var rules: UInt8 = 0
        var entry = Entry()
        /// What was true when it began: puts that had ended, and those that must not be seen, a bit each; whether there
        /// must be a value.
        var ended: UInt8 = 0
        var gone: UInt8 = 0
        var mustFind = false
    }

    struct Collector: Hashable {
        var step = Collection.idle
        var rules: UInt8 = 0
    }

    struct State: Hashable {
        var disk = Entry()
        /// How many rules the file has had, and those that were taken off, a bit each.
        var made: UInt8 = 0
        var retired: UInt8 = 0
        /// Up to what time each is meant.
        var latest: [UInt8] = [0, 0]
        /// Words of the control file: the number of the rules in force, the latest time that they are meant for, that of
        /// any entry, whether it is ready.
        var inForce: UInt8 = 0
        var latestRule: UInt8 = 0
        var latestCreated: UInt8 = 0
        var isReady = true
        /// Held by the generation as it is now, else as good as none.
        var memory = Entry()
        var puts: UInt8 = 0
        var writers: [Writer]
        var maker = Maker()
        var reader = Reader()
        var collector = Collector()
        /// Puts that have ended, and those that no read may see that begins now.
        var ended: UInt8 = 0
        var gone: UInt8 = 0
        /// A put has ended that began when no rule was under way, and none has begun since.
        var mustFind = false
        var isBroken = false

        init(writers: Int) {
            self.writers = Array(repeating: Writer(), count: writers)
        }
    }

    /// What looks at the clock has what it shows.
    enum Move { case put(Int, UInt8), rule(UInt8), crashOfRule, heal, read, collect, crashOfCollection }

    static let mostPuts: UInt8 = 2
    static let mostRules: UInt8 = 2

    struct Model {
        let mistake: Mistake?
        /// How many put at the same time.
        let writers: Int

        /// With two who put, one: else there are too many states.
        var mostRules: UInt8 { writers == 1 ? InvalidationModel.mostRules : 1 }
    }

    /// Visits all states until a promise is broken; says how many there are, and the way to that.
    ///
    /// Here, where it is compiled with optimization: there are 1.6 million.
    static func explore(_ mistake: Mistake?, writers: Int = 1) -> (states: Int, trace: [String]?) {
        var space = StateSpace(of: Model(mistake: mistake, writers: writers))
        let found = space.visit { state, _ in state.isBroken ? true : nil }
        return (space.states.count, found?.trace)
    }
}

extension InvalidationModel.State {
    /// What was held by the generation is so no longer.
    mutating func raiseGeneration() {
        memory = InvalidationModel.Entry()
        for writer in writers.indices { writers[writer].isLatest = false }
        reader.isLatest = false
    }

    /// The rules of the file up to a number, without those that were taken off.
    func rules(upTo number: UInt8) -> UInt8 {
        (1 << min(number, made) - 1) & ~retired
    }

    /// Whether one of these rules is meant for an entry.
    func isMeant(_ entry: InvalidationModel.Entry, by rules: UInt8) -> Bool {
        (0..<InvalidationModel.mostRules).contains { rule in
            rules & (1 << rule) != 0 && rule + 1 > entry.number && entry.created <= latest[Int(rule)]
        }
    }
}

extension InvalidationModel.Model: ExploredModel {
    typealias State = InvalidationModel.State
    typealias Move = InvalidationModel.Move

    var initialStates: [State] { [State(writers: writers)] }

    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        if state.isBroken { return }
        func add(_ move: Move, _ advance: (inout State) -> Bool) {
            var copy = state
            guard advance(&copy) else { return }
            next.append(copy)
            moves.append(move)
        }
        for writer in state.writers.indices {
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
            // Under the lock that the maker has.
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
        rules \(state.made) to \(state.latest), in force \(state.inForce), retired \(state.retired), puts \(state.writers.map(\.step)), rule \(state.maker.step), \
        read \(state.reader.step), collection \(state.collector.step), gone \(state.gone)
        """
    }
}
