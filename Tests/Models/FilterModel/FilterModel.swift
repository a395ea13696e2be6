// SPDX-License-Identifier: Apache-2.0

/// An explicit-state model of the filter of keys in the control file (``KeyFilter``).
///
/// A writer puts one key, again and again; a reader asks for it by the filter where that counts; others look on
/// disk at any moment; a sweep completes the filter; somebody rebuilds the control file. One step is one system call
/// or one atomic operation, sequentially consistent; the writer, the sweep and the rebuilder may die before each.
/// Reader, writer and sweep have a process each, which maps the file anew when it finds its own superseded.
///
/// Nobody removes the key, so a read that begins after a put has returned, or after another read has found it on
/// disk, must not be told that it is absent: that is what is checked.
/// That a new file takes the place of the first is modelled once; the first may be complete, or not (then the
/// entry is there already, without its bits), or missing.
enum FilterModel {
    /// A deviation from the protocol that must be found.
    enum Mistake: UInt8, CaseIterable {
        /// A writer publishes and then sets its bits.
        case bitsAfterPublishing
        /// It looks which file there is before it takes its stripe.
        case lookedBeforeLocking
        /// It sets no bits.
        case noBits
        /// A reader does not look whether the file is ready.
        case phaseUnchecked
        /// It does not look whether the filter is complete.
        case sealUnchecked
        /// A sweep begins to complete the filter of a file that is forming.
        case begunWhileForming
        /// It marks the filter as complete before it lists the entries.
        case sealedBeforeListing
        /// It marks the filter of the file that it has mapped then.
        case sealedInAnother
        /// A rebuilt file is taken for complete.
        case rebuiltComplete
        /// It is ready without a barrier.
        case readyWithoutBarrier
        /// The one before it is not marked as superseded.
        case neverSuperseded
    }

    enum File: UInt8 { case none, first, second }
    enum Phase: UInt8 { case missing, forming, ready, superseded }
    /// What a writer does; to lock, or to unlock and return, is one step with its neighbour.
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
        /// How many of its steps it has taken.
        var taken: UInt8 = 0
        var holdsStripe = false
        var file = File.none
    }

    struct Reader: Hashable {
        var step = Step.start
        var file = File.none
        /// What it has mapped.
        var mapped = File.first
        /// The key was there for certain when the read began.
        var mustFind = false
    }

    struct State: Hashable {
        var path = File.first
        var first = Control(phase: .ready)
        var second = Control()
        var isOnDisk = false
        /// A put has returned, or a read has found the key.
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

        /// Whether a process that has `file` mapped goes on with it.
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
        // A process that has mapped nothing yet maps what it finds.
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
