// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of one key whose value is a record in a pack or a file, and of the memory tiers.
///
/// The word of the key in the index of packs is the truth: if it names a record, the record is the value, whatever file is
/// there. `BucketModel` covers how the word is found and changed; here it is one register, changed by compare-and-swap. A
/// put into a pack replaces the word without a lock. If the key has no word, the put gives it one under the exclusive
/// stripe, and deletes the file below. All other writers hold the stripe. The generation counts all writers but those that
/// replace a word, as in `GenerationModel`. So it changes whenever a key gets or loses its word.
///
/// A put into files and a remove clear the word that they noted before; cleared whatever it is by then, no history would
/// be broken. Neither would one by an eviction without the stripe, which `BucketModel` needs.
///
/// One step is one system call or one atomic operation, sequentially consistent; each process may die before each step.
/// The model checks linearizability: a get, also one from memory, returns the latest value or, only after a remove or an
/// eviction, none.
enum HomesModel {
    /// A deviation from the protocol that must be found.
    enum Mistake: UInt8, CaseIterable {
        /// A put into a pack leaves the file below.
        case fileStays
        /// A put into a pack gives the key a word without the stripe.
        case wordTakenWithoutStripe
        /// A put into a pack replaces whatever word it finds.
        case wordReplacedBlindly
        /// A put into a pack deletes the file before it publishes its word.
        case fileDeletedFirst
        /// The generation stays the same when a put gives a key its word or an eviction takes it.
        case generationStays
        /// A put into files clears the word before it writes the file.
        case wordClearedFirst
        /// A put into files leaves the word.
        case wordStays
        /// A put into files does not lock the stripe.
        case putWithoutStripe
        /// A put into files keeps its value in memory although the word was replaced meanwhile.
        case keptDespiteOverwrite
        /// An update locks the stripe like a put.
        case updateShared
        /// An update stores its word without comparing.
        case updateStored
        /// An eviction leaves the file below.
        case evictionLeavesFile
        /// An eviction clears the word before it deletes the file.
        case evictionClearsFirst
        /// A value is moved into files, and whatever word there is by then is cleared.
        case unpackedBlindly
        /// A move stores the word of its copy without comparing.
        case moveStored
        /// A move does not lock the stripe.
        case moveWithoutStripe
        /// A get that has found no word does not look for one after it has read the file.
        case wordNotSeenAgain
        /// A get reports a miss although a writer was active meanwhile.
        case missedAtOnce
        /// A value in memory that was read from a pack counts as current while the generation is the same.
        case memoryByGenerationAlone
        /// The generation is loaded after the value was read.
        case generationLoadedLate
    }

    enum Call: Hashable, Sendable {
        /// Stores the value in a pack; or in files, and keeps it in memory if no other writer was active.
        case packPut(UInt8), filePut(UInt8)
        case remove
        /// Reads the value and stores it plus five in a pack.
        case update
        /// The janitor drops the word, or copies the record to another pack.
        case evict, move
        /// Writes the value of a record into files and clears the word.
        case unpack
        /// The index is lost with a power failure, while no call runs and after none was killed. A file that a killed put
        /// has left below its word would come back.
        case lose
        /// Reads the value; `load` also keeps it in memory, and `hit` returns what memory has.
        case get, load, hit

        var isRead: Bool { self == .get || self == .load || self == .hit }
    }

    struct Generation: Hashable {
        var writers: UInt8 = 0
        var version: UInt8 = 0
    }

    /// A value in memory.
    struct Copy: Hashable {
        var value: UInt8
        /// The word under which it was read; 0 for a value from a file.
        var word: UInt8
        /// The version of the generation under which it was read.
        var version: UInt8
    }

    enum Stripe: UInt8 { case none, shared, exclusive }

    struct Actor: Hashable {
        /// The number of calls that have ended.
        var ended: UInt8 = 0
        /// The number of the next step of the call.
        var step: UInt8 = 0
        var isKilled = false
        var holds = Stripe.none
        /// Whether it is counted as a writer.
        var isWriter = false
        /// The word that it has loaded.
        var word: UInt8 = 0
        /// The number of its own record.
        var record: UInt8 = 0
        var generation = Generation()
        /// The value that it has read.
        var value: UInt8 = 0
        var copy: Copy?
    }

    struct State: Hashable {
        /// The number of a record; 0 if the key has none.
        var word: UInt8 = 0
        /// The values of the records, by number minus one; a record never changes.
        var records: [UInt8] = []
        /// The value in the file; 0 if there is none.
        var file: UInt8 = 0
        var generation = Generation()
        var actors: [Actor]
        var histories: Histories
    }

    enum Move { case step(Int), kill(Int) }

    struct Model {
        /// The calls of each process.
        let programs: [[Call]]
        /// The values at first, in a pack and in a file.
        var packed: UInt8 = 0
        var filed: UInt8 = 0
        var mistake: Mistake?
    }
}

extension HomesModel.Model: ExploredModel {
    typealias State = HomesModel.State
    typealias Move = HomesModel.Move

    var initialStates: [State] {
        let value = packed == 0 ? filed : packed
        let histories = Histories(value, processes: programs.count)
        var state = State(actors: programs.map { _ in HomesModel.Actor() }, histories: histories)
        if packed != 0 {
            state.records = [packed]
            state.word = 1
        }
        state.file = filed
        return [state]
    }

    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        if state.histories.isBroken { return }
        for index in programs.indices {
            let actor = state.actors[index]
            if actor.isKilled || Int(actor.ended) == programs[index].count { continue }
            var copy = state
            if advance(index, in: &copy) {
                next.append(copy)
                moves.append(.step(index))
            }
            if actor.step > 0, !programs[index][Int(actor.ended)].isRead {
                var copy = state
                // The kernel releases its locks; it stays counted as a writer.
                copy.actors[index] = HomesModel.Actor(ended: actor.ended, isKilled: true)
                next.append(copy)
                moves.append(.kill(index))
            }
        }
    }

    func line(for move: Move, from before: State, to after: State) -> String {
        guard case .step(let index) = move else { return "\(move)  => \(summary(of: after))" }
        let actor = before.actors[index]
        return "\(index): \(programs[index][Int(actor.ended)]) \(actor.step)  => \(summary(of: after))"
    }

    func summary(of state: State) -> String {
        let word = state.word == 0 ? "-" : "\(state.records[Int(state.word) - 1])"
        let generation = "\(state.generation.version)+\(state.generation.writers)"
        return "word \(word), file \(state.file), generation \(generation), values "
            + "\(state.histories.all.map(\.value).sorted())"
    }
}

extension HomesModel.Model {
    /// Visits all states until one breaks a promise.
    func explore() -> Exploration<State> {
        StateSpace.explore(self) { $0.histories.isBroken }
    }
}
