// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of the Bloom filter of keys in the control file (``BloomFilter``).
///
/// A writer puts one key repeatedly; a reader checks the filter for it if the filter is valid; other readers check the
/// disk at any moment; a sweep completes the filter; a rebuilder replaces the control file. One step is one system call
/// or one atomic operation, sequentially consistent; the writer, the sweep and the rebuilder may die before each step.
/// Reader, writer and sweep each have a process, which maps the file again when it finds its own file superseded.
///
/// The key is never removed, so the model checks that no read reports it absent if it begins after a put has returned or
/// after another read has found the key on disk.
/// The replacement of the first file is modelled once; the first file may be complete, incomplete (then the entry
/// already exists, without its bits), or missing.
enum FilterModel {
    /// A deviation from the protocol that must be found.
    enum Mistake: UInt8, CaseIterable {
        /// A writer publishes the entry before it sets its bits.
        case bitsAfterPublishing
        /// A writer looks up the control file before it locks its stripe.
        case lookedBeforeLocking
        /// A writer sets no bits.
        case noBits
        /// A reader does not check whether the file is ready.
        case phaseUnchecked
        /// A reader does not check whether the filter is complete.
        case sealUnchecked
        /// A sweep starts to complete the filter of a file that is forming.
        case begunWhileForming
        /// A sweep marks the filter as complete before it lists the entries.
        case sealedBeforeListing
        /// A sweep marks the filter of the file that it has mapped at the end.
        case sealedInAnother
        /// A rebuilt file is treated as complete.
        case rebuiltComplete
        /// A rebuilt file is ready without a barrier.
        case readyWithoutBarrier
        /// The replaced file is not marked as superseded.
        case neverSuperseded
    }

    enum File: UInt8 { case none, first, second }
    enum Phase: UInt8 { case missing, forming, ready, superseded }
    /// A writer's steps; locking, or unlocking and returning, is one step with its neighbor.
    enum WriterStep: UInt8 { case lock, look, mark, publish, end }
    enum Step: UInt8 { case start, seal, bits }
    enum Sweep: UInt8 { case idle, begun, listed }
    enum Rebuild: UInt8 { case none, superseded, renamed, passedBarrier }

    struct Control: Hashable {
        var phase = Phase.missing
        var hasBits = false
        var isComplete = false
    }

    struct Writer: Hashable {
        /// The number of steps taken.
        var taken: UInt8 = 0
        var holdsStripe = false
        var file = File.none
    }

    struct Reader: Hashable {
        var step = Step.start
        var file = File.none
        /// The file that its process has mapped.
        var mapped = File.first
        /// Whether the key certainly existed when the read began.
        var mustFind = false
    }

    struct State: Hashable {
        var path = File.first
        var first = Control(phase: .ready)
        var second = Control()
        var isOnDisk = false
        /// Whether a put has returned or a read has found the key.
        var isSeen = false
        var writer = Writer()
        var writerMapped = File.first
        var reader = Reader()
        var sweep = Sweep.idle
        var sweptFile = File.none
        var sweeperMapped = File.first
        var rebuild = Rebuild.none
        var isBroken = false

        subscript(_ file: File) -> Control {
            get { file == .first ? first : file == .second ? second : Control() }
            set { if file == .first { first = newValue } else if file == .second { second = newValue } }
        }

        /// Whether a process that has `file` mapped continues to use it.
        func isUsable(_ file: File) -> Bool { [.forming, .ready].contains(self[file].phase) }
    }

    enum Move: UInt8 {
        case writer, reader, readerOfDisk, remap, sweep, remapSweeper, rebuild
        case crash, crashOfSweep, crashOfRebuild
    }

    struct Model {
        let mistake: Mistake?

        var writerSteps: [WriterStep] {
            switch mistake {
            case .bitsAfterPublishing: [.lock, .look, .publish, .mark, .end]
            case .lookedBeforeLocking: [.look, .lock, .mark, .publish, .end]
            case .noBits: [.lock, .look, .publish, .end]
            default: [.lock, .look, .mark, .publish, .end]
            }
        }
    }
}

extension FilterModel.Model: ExploredModel {
    typealias State = FilterModel.State
    typealias Move = FilterModel.Move

    var initialStates: [State] {
        var complete = State()
        complete.first.isComplete = true
        var incomplete = State()
        incomplete.isOnDisk = true
        incomplete.isSeen = true
        var missing = incomplete
        missing.path = .none
        missing.first = FilterModel.Control()
        missing.sweeperMapped = .none
        missing.reader.mapped = .none
        missing.writerMapped = .none
        // A process that has mapped no file yet maps the one that it finds.
        let early = [complete, incomplete].map { state in
            var state = state
            state.writerMapped = .none
            return state
        }
        return [complete, incomplete, missing] + early
    }

    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        if state.isBroken { return }
        func add(_ move: Move, _ advance: (inout State) -> Bool) {
            var copy = state
            guard advance(&copy) else { return }
            next.append(copy)
            moves.append(move)
        }
        add(.writer) { advanceWriter(in: &$0) }
        add(.crash) { state in
            defer { state.writer = FilterModel.Writer() }
            return state.writer.taken > 0
        }
        add(.reader) { advanceReader(in: &$0) }
        add(.readerOfDisk) { state in
            defer { state.isSeen = state.isOnDisk }
            return state.isOnDisk && !state.isSeen
        }
        add(.remap) { remap(&$0.reader.mapped, in: state) }
        add(.sweep) { sweep(in: &$0) }
        add(.remapSweeper) { remap(&$0.sweeperMapped, in: state) }
        add(.rebuild) { rebuild(in: &$0) }
        add(.crashOfSweep) { end(&$0.sweep) }
        add(.crashOfRebuild) { state in
            guard state.rebuild != .none else { return false }
            state.rebuild = .none
            return true
        }
    }

    func line(for move: Move, from before: State, to after: State) -> String {
        "\(move)  => \(summary(of: after))"
    }

    func summary(of state: State) -> String {
        "disk \(state.isOnDisk), seen \(state.isSeen), \(state.path): \(state.first), \(state.second)"
    }

    private func end(_ sweep: inout FilterModel.Sweep) -> Bool {
        defer { sweep = .idle }
        return sweep != .idle
    }

    private func remap(_ file: inout FilterModel.File, in state: State) -> Bool {
        guard !state.isUsable(file), state.isUsable(state.path) else { return false }
        file = state.path
        return true
    }
}

extension FilterModel.Model {
    /// Visits all states until one breaks a promise.
    func explore() -> Exploration<State> {
        StateSpace.explore(self) { $0.isBroken }
    }
}
