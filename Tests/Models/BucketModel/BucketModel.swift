// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of one bucket of the index of packs.
///
/// A pack is a file of records; a word of the bucket names the record of a key. Processes change words by
/// compare-and-swap. A put that finds a word of its key replaces it without a lock. All others hold the key's stripe: a put
/// that takes a word for its key, a remove, an eviction, and a move of the record to another pack. So a key never has two
/// words. The model follows one key, and other keys, which take and leave words at any moment. One step is one atomic
/// operation, sequentially consistent; each process may die before each step. The pack of a record that was evicted or
/// moved is written again, under readers that have loaded its word before.
///
/// The model checks linearizability: a get returns the latest value or, only after a remove or an eviction, none.
///
/// An earlier design took words without a lock, as the prototype did: two puts of a new key can then take two words, of
/// which the lower one counts. Each repair of that was found to bring back a removed value, or to lose one for a moment.
enum BucketModel {
    /// A deviation from the protocol that must be found.
    enum Mistake: UInt8, CaseIterable {
        /// A put takes a word for its key without the stripe.
        case takenWithoutStripe
        /// A put that has locked the stripe does not look for a word of its key again.
        case notSeenAgain
        /// A put stores its word without comparing.
        case storedBlindly
        /// A remove does not lock the stripe.
        case removedWithoutStripe
        /// A move stores the word of the copy without comparing.
        case movedBlindly
        /// A move does not lock the stripe.
        case movedWithoutStripe
        /// A get returns the bytes that it has copied without checking the word again.
        case copiedBlindly
    }

    enum Call: UInt8 {
        case put, remove
        /// The janitor clears the words of the record that the bucket held at first, and writes its pack again.
        case evict
        /// The janitor copies that record to another pack, and writes its pack again.
        case move
        /// A put of another key finds no empty word, and takes the word of this key.
        case displace
        case get
    }

    /// The words: empty, another key's, or the number of a record of the key.
    typealias Word = UInt8
    static let empty: Word = 0
    static let other: Word = 1
    /// The record that the bucket holds at first.
    static let initial: Word = 2
    /// The copy that a move makes of it.
    static let copy: Word = 3
    /// The record that the program with the given number puts.
    static func record(ofProgram program: Int) -> Word { Word(4 + program) }
    /// The bytes of a pack that is being written again.
    static let torn: UInt8 = 15

    /// The value in a record; 0 for none.
    static func value(of word: Word) -> UInt8 { word == copy ? initial : word == other ? 0 : word }

    /// The next step of a call.
    enum Step: UInt8 {
        /// Loads a word to find that of the key, and an empty one.
        case scan
        /// Locks the stripe.
        case lock
        /// Exchanges the chosen word.
        case exchange
        /// Copies the record.
        case copy
        /// Loads the word again.
        case check
        /// Writes the record's pack again.
        case reuse
    }

    /// A process that runs one call after another.
    struct Actor: Hashable {
        /// The number of calls that have ended.
        var ended: UInt8 = 0
        var isRunning = false
        var isKilled = false
        var step = Step.scan
        /// The index of the next word.
        var position: UInt8 = 0
        /// The index of the word that was chosen; `none` if there is none.
        var chosen = Actor.none
        /// The word that the call expects there.
        var expected = BucketModel.empty
        /// The index of an empty word, or of another key's if none is empty.
        var free = Actor.none
        /// The word that was loaded there.
        var freeWord = BucketModel.empty
        var holdsStripe = false
        /// The bytes that a get has copied.
        var bytes: UInt8 = 0

        static let none: UInt8 = 255
    }

    /// Three words.
    struct Words: Hashable {
        private var bits: UInt32 = 0

        static let count: UInt8 = 3

        subscript(index: UInt8) -> Word {
            get { UInt8(truncatingIfNeeded: bits >> (8 * UInt32(index))) }
            set {
                let shift = 8 * UInt32(index)
                bits = bits & ~(0xff << shift) | UInt32(newValue) << shift
            }
        }
    }

    struct State: Hashable {
        var words = Words()
        /// Whether the pack of the first record is being written again.
        var isReused = false
        var actors: [Actor]
        /// How often other keys have taken or left a word.
        var neighborChanges: UInt8 = 0
        var histories: Histories
        /// Whether a word of another key was overwritten.
        var isNeighborLost = false

        var isBroken: Bool { histories.isBroken || isNeighborLost }
    }

    enum Move { case step(Int), kill(Int), taken(UInt8), left(UInt8) }

    struct Model {
        /// The calls of each process; at most one process gets.
        let programs: [[Call]]
        /// The words at first.
        var first: [Word] = [BucketModel.initial, BucketModel.empty, BucketModel.empty]
        var mistake: Mistake?
        /// How often other keys take or leave a word.
        var neighborChanges: UInt8 = 2
    }
}

extension BucketModel.Model: ExploredModel {
    typealias State = BucketModel.State
    typealias Move = BucketModel.Move

    var initialStates: [State] {
        var words = BucketModel.Words()
        for (index, word) in first.enumerated() { words[UInt8(index)] = word }
        let present = first.first { $0 > BucketModel.other } ?? 0
        let actors = programs.map { _ in BucketModel.Actor() }
        let histories = Histories(present, processes: programs.count)
        return [State(words: words, actors: actors, histories: histories)]
    }

    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        if state.isBroken { return }
        for index in programs.indices {
            let actor = state.actors[index]
            if actor.isKilled || Int(actor.ended) == programs[index].count { continue }
            var copy = state
            if advance(index, in: &copy) {
                next.append(copy)
                moves.append(.step(index))
            }
            if actor.isRunning, programs[index][Int(actor.ended)] != .get {
                var copy = state
                copy.actors[index] = BucketModel.Actor(ended: actor.ended, isKilled: true)
                next.append(copy)
                moves.append(.kill(index))
            }
        }
        guard state.neighborChanges < neighborChanges else { return }
        for index in 0..<BucketModel.Words.count {
            let word = state.words[index]
            guard word <= BucketModel.other else { continue }
            var copy = state
            copy.words[index] = word == BucketModel.empty ? BucketModel.other : BucketModel.empty
            copy.neighborChanges += 1
            next.append(copy)
            moves.append(word == BucketModel.empty ? .taken(index) : .left(index))
        }
    }

    func line(for move: Move, from before: State, to after: State) -> String {
        switch move {
        case .step(let index):
            let actor = before.actors[index]
            let call = programs[index][Int(actor.ended)]
            return "process \(index): \(call), \(actor.step) \(actor.position)  => \(summary(of: after))"
        default: return "\(move)  => \(summary(of: after))"
        }
    }

    func summary(of state: State) -> String {
        let words = (0..<BucketModel.Words.count).map { "\(state.words[$0])" }.joined(separator: " ")
        return "\(words), values \(state.histories.all.map(\.value).sorted())"
    }
}

extension BucketModel.Model {
    /// Visits all states until one breaks a promise.
    func explore() -> Exploration<State> {
        StateSpace.explore(self) { $0.isBroken }
    }
}
