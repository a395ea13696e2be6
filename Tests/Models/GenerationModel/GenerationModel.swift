// SPDX-License-Identifier: Apache-2.0

extension GenerationModel {
    /// A deviation from the protocol: mistakes, and what makes no difference.
    enum Change: UInt8 {
        // The reader.
        /// A copy in memory is returned without a look at the word.
        case hitWithoutCheck
        /// The word that a copy is held under is loaded after the record was read.
        case wordAfterRecord
        /// A copy is held under a word with writers in it.
        case copyHeldDespiteWriter
        /// The word that an absence is held under is loaded after the entry was looked for; records are not held.
        case absenceWordAfterRecord
        /// A key is told to be absent without a look at the word.
        case absenceWithoutCheck
        /// An absence is held under a word with writers in it.
        case absenceHeldDespiteWriter
        /// An absence is held under a word of a control file that is still forming.
        case absenceHeldWhileForming
        /// The word is looked at before the phase, for a copy as for what is read, as what is known of entries is
        /// looked up: makes no difference.
        case phaseAfterWord
        /// Whether the control file is ready is looked up after the record was read.
        case phaseAfterRecord
        /// A copy is held under a word of a control file that is still forming.
        case copyHeldWhileForming

        // The writer.
        /// The version is raised, and the writer takes itself off, before it publishes.
        case endBeforePublishing
        /// The writer does not add itself, and only raises the version afterwards.
        case writerNotAdded
        /// The writer adds itself before it locks the stripe.
        case addedBeforeLocking
        /// The stripe is unlocked before the version is raised.
        case unlockedBeforeEnd
        /// The writer takes itself off first, and then raises the version.
        case takenOffBeforeRaising
        /// The writer raises the version first, and then takes itself off: makes no difference.
        case raisedBeforeTakingOff
        /// The word at the end is loaded and stored, not changed in one atomic step.
        case endNotAtomic
        /// The version is raised with the first step, and the writer only takes itself off at the end.
        case raisedAtBeginning
        /// A put keeps its value in memory whoever else wrote.
        case ownValueUnchecked
        /// A put keeps its value in memory if nobody was writing when it began.
        case ownValueCheckedAtBeginning
        /// A put keeps its value in memory if nobody is writing when it ends.
        case ownValueCheckedAtEnd
        /// The same while the control file is still forming.
        case ownValueHeldWhileForming

        /// A remove that finds nothing takes itself off and leaves the version.
        case versionLeftIfNothingRemoved

        // The sweep.
        /// The sweep clears the count and leaves the version.
        case sweepWithoutRaising
        /// The sweep does not take the stripe.
        case sweepWithoutStripe
        /// The sweep raises the version of what it reclaims: makes no difference.
        case reclaimRaises

        // The control file that is rebuilt.
        /// The new file is ready as soon as the path leads to it.
        case readyWithoutBarrier
        /// Who finds a file forming, as its maker has died, takes it for ready without a barrier.
        case barrierNotRepeated
        /// The file before is marked as superseded only when the path leads to the new one.
        case supersededAfterRename
        /// The file before is not marked.
        case neverSuperseded
        /// A writer looks which control file there is before it locks the stripe.
        case lookedBeforeLocking
        /// A writer without a control file publishes without a look whether there is one now.
        case publishedWithoutLook
        /// The words of the new file start as those of the first did.
        case wordsStartOver
        /// The same, but a process that maps the new file clears its memory tier.
        case wordsStartOverInClearedTier
        /// A hit looks at the word alone, as whoever supersedes a file closes its words, once it is marked.
        case wordsClosed
        /// The same, and a writer goes on with a superseded file as long as no other is there: makes no difference.
        case wordsClosedAndRaised
    }

    /// What happens to the control file.
    enum Setting: UInt8 {
        /// It is ready all the time.
        case kept
        /// Another process replaces it; some have it mapped at first, some do not.
        case replaced
        /// There is none at first and nobody has one mapped; then one is made.
        case made
    }

    /// What gc does meanwhile.
    enum Collector: UInt8 { case none, sweeps, sweepsAndReclaims }

    /// A writer's call, and which process makes it.
    struct Call: Hashable {
        enum Kind: UInt8 { case none, put, remove }
        var kind = Kind.none
        var process: UInt8 = 0
        var key = Key.k1

        static let none = Call()
        static func put(in process: UInt8, _ key: Key = .k1) -> Call {
            Call(kind: .put, process: process, key: key)
        }
        static func remove(in process: UInt8, _ key: Key = .k1) -> Call {
            Call(kind: .remove, process: process, key: key)
        }
    }

    /// Two writers, two readers, and what else may go on.
    struct Model: Hashable {
        typealias State = GenerationModel.State
        typealias Move = GenerationModel.Move
        typealias Writer = GenerationModel.Writer
        typealias Reader = GenerationModel.Reader

        let first: Call
        let second: Call
        /// The process of each reader, 0 or 1; one reader or two.
        let readers: [UInt8]
        let setting: Setting
        let collector: Collector
        /// Whether processes keep that they have found no entry.
        let keepsAbsences: Bool
        let change: Change?
        let writerSteps: [WriterStep]
        let readerSteps: [ReaderStep]
        /// The one after each of `readerSteps`, by its raw value.
        let readerStepAfter: [ReaderStep]
        /// The first of `readerSteps` that is none of a copy.
        let firstStepOnDisk: ReaderStep

        init(
            _ first: Call,
            _ second: Call = .none,
            readers: [UInt8] = [0, 1],
            setting: Setting = .kept,
            collector: Collector = .sweepsAndReclaims,
            keepsAbsences: Bool = true,
            change: Change? = nil
        ) {
            self.first = first
            self.second = second
            self.readers = readers
            self.setting = setting
            self.collector = collector
            self.keepsAbsences = keepsAbsences
            self.change = change
            writerSteps = WriterStep.sequence(setting, change)
            readerSteps = ReaderStep.sequence(setting, change)
            var after = ReaderStep.allCases
            for (step, next) in zip(readerSteps, readerSteps.dropFirst()) { after[Int(step.rawValue)] = next }
            readerStepAfter = after
            firstStepOnDisk = readerSteps.first { $0 != .checkPhase && $0 != .checkWord } ?? .readRecord
        }
    }

    /// Who moves from one state to the next.
    enum Move: UInt8 {
        case writer0, writer1, reader0, reader1, sweep, rebuild
        case reclaim, remap0, remap1
        case crash0, crash1, crash2, crashOfSweep, crashOfRebuild
    }
}

extension GenerationModel.Model: ExploredModel {
    /// With warm and with cold memory tiers; where a control file is replaced, with and without one mapped.
    ///
    /// There is an entry; reclaiming it leads to all that begins without.
    var initialStates: [State] {
        var state = State()
        state.writer0 = first.kind == .none ? .ended : Writer()
        state.writer1 = second.kind == .none ? .ended : Writer()
        if readers.count < 2 { state.reader1.step = .dead }
        if setting == .made {
            state.path = .none
            state.first = .init()
            return [state]
        }
        for process: UInt8 in 0...2 { state[process: process].file = .first }
        var warm = state
        warm.process0.slot1.number = 1
        warm.process1.slot1.number = 1
        guard setting == .replaced else { return [state, warm] }
        return [state, warm]
            + (0...2).map { (process: UInt8) in
                var unmapped = state
                unmapped[process: process] = .init()
                return unmapped
            }
    }

    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        guard !state.isBroken else { return }
        func add(_ move: Move, _ advance: (inout State) -> Bool) {
            var copy = state
            guard advance(&copy) else { return }
            sortReaders(of: &copy)
            next.append(copy)
            moves.append(move)
        }
        if state.writer0 != .ended { add(.writer0) { advance(writer: 0, in: &$0) } }
        if state.writer1 != .ended { add(.writer1) { advance(writer: 1, in: &$0) } }
        if state.reader0.step != .dead { add(.reader0) { advance(reader: 0, in: &$0) } }
        if state.reader1.step != .dead { add(.reader1) { advance(reader: 1, in: &$0) } }
        if collector != .none {
            add(.sweep) { sweep(in: &$0) }
            add(.crashOfSweep) { crashSweep(in: &$0) }
        }
        if collector == .sweepsAndReclaims { add(.reclaim) { reclaim(in: &$0) } }
        if first.process == 0 || second.process == 0 { add(.crash0) { crash(0, in: &$0) } }
        if first.process == 1 || second.process == 1 { add(.crash1) { crash(1, in: &$0) } }
        if first.process == 2 || second.process == 2 { add(.crash2) { crash(2, in: &$0) } }
        guard setting != .kept else { return }
        add(.rebuild) { rebuild(in: &$0) }
        add(.crashOfRebuild) { crashRebuild(in: &$0) }
        add(.remap0) { remap(0, in: &$0) }
        add(.remap1) { remap(1, in: &$0) }
    }

    /// SIGKILL amid a write: the tier is gone, the kernel unlocks the stripe, the count in the word stays.
    private func crash(_ process: UInt8, in state: inout State) -> Bool {
        var isWriting = false
        for index: UInt8 in 0...1 where call(index).process == process {
            if state[writer: index] != .ended && state[writer: index].next > 0 { isWriting = true }
            state[writer: index] = .ended
        }
        guard isWriting else { return false }
        for index in readers.indices where readers[index] == process {
            state[reader: UInt8(index)] = Reader(step: .dead)
        }
        state[process: process] = .init()
        return true
    }

    /// Two readers in one process are interchangeable: of two states that differ in this alone one is enough.
    private func sortReaders(of state: inout State) {
        guard readers.count == 2, readers[0] == readers[1], state.reader1.rank < state.reader0.rank else {
            return
        }
        swap(&state.reader0, &state.reader1)
    }

    func call(_ index: UInt8) -> GenerationModel.Call { index == 0 ? first : second }
}

extension GenerationModel.Call: CustomStringConvertible {
    var description: String { kind == .none ? "nobody" : "\(kind)(\(key)) in \(process)" }
}

extension GenerationModel.Model: CustomStringConvertible {
    var description: String {
        let calls = "\(first.description) + \(second.description), readers in \(readers)"
        return "\(calls), control file \(setting)" + ", gc \(collector)"
    }
}
