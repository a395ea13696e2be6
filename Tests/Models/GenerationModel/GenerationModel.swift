// SPDX-License-Identifier: Apache-2.0

extension GenerationModel {
    /// A deviation from the protocol: a mistake or a variation that makes no difference.
    enum Change: UInt8 {
        // The reader.
        /// A copy in memory is returned without a check of the word.
        case hitWithoutCheck
        /// The word under which a copy is held is loaded after the record was read.
        case wordAfterRecord
        /// A copy is held under a word with writers in it.
        case copyHeldDespiteWriter
        /// The word under which an absence is held is loaded after the lookup of the entry; records are not held.
        case absenceWordAfterRecord
        /// A key is reported absent without a check of the word.
        case absenceWithoutCheck
        /// An absence is held under a word with writers in it.
        case absenceHeldDespiteWriter
        /// An absence is held under a word of a control file that is still forming.
        case absenceHeldWhileForming
        /// The word is checked before the phase, both for a copy and for a read from disk, as in lookups of entry information;
        /// this makes no difference.
        case phaseAfterWord
        /// The phase of the control file is checked after the record was read.
        case phaseAfterRecord
        /// A copy is held under a word of a control file that is still forming.
        case copyHeldWhileForming

        // The writer.
        /// The version is raised, and the writer removes itself, before it publishes.
        case endBeforePublishing
        /// The writer does not add itself, and only raises the version afterwards.
        case writerNotAdded
        /// The writer adds itself before it locks the stripe.
        case addedBeforeLocking
        /// The stripe is unlocked before the version is raised.
        case unlockedBeforeEnd
        /// The writer removes itself first, and then raises the version.
        case takenOffBeforeRaising
        /// The writer raises the version first, and then removes itself; this makes no difference.
        case raisedBeforeTakingOff
        /// At the end the word is loaded and stored instead of changed in one atomic step.
        case endNotAtomic
        /// The version is raised with the first step, and the writer only removes itself at the end.
        case raisedAtBeginning
        /// A put keeps its value in memory even if others wrote.
        case ownValueUnchecked
        /// A put keeps its value in memory if no one else was writing when it began.
        case ownValueCheckedAtBeginning
        /// A put keeps its value in memory if no one else is writing when it ends.
        case ownValueCheckedAtEnd
        /// A put keeps its value in memory while the control file is still forming.
        case ownValueHeldWhileForming

        /// A remove that finds no entry removes itself from the word and leaves the version.
        case versionLeftIfNothingRemoved

        // The sweep.
        /// The sweep clears the count and leaves the version.
        case sweepWithoutRaising
        /// The sweep does not lock the stripe.
        case sweepWithoutStripe
        /// The sweep raises the version of entries that it reclaims; this makes no difference.
        case reclaimRaises

        // The rebuild of the control file.
        /// The new file is ready as soon as the path leads to it.
        case readyWithoutBarrier
        /// A process that finds a file forming because its maker has died marks it as ready without a barrier.
        case barrierNotRepeated
        /// The old file is marked as superseded only after the path leads to the new one.
        case supersededAfterRename
        /// The old file is not marked.
        case neverSuperseded
        /// A writer looks up the control file before it locks the stripe.
        case lookedBeforeLocking
        /// A writer without a control file publishes without checking whether one exists now.
        case publishedWithoutLook
        /// The words of the new file have the same initial values as those of the first one.
        case wordsStartOver
        /// The same, but a process that maps the new file clears its memory tier.
        case wordsStartOverInClearedTier
        /// A hit checks only the word; a process that supersedes a file closes the file's words after it has marked the file.
        case wordsClosed
        /// The same, and a writer continues with a superseded file as long as there is no other; this makes no difference.
        case wordsClosedAndRaised
    }

    /// What happens to the control file.
    enum Setting: UInt8 {
        /// It is always ready.
        case kept
        /// Another process replaces it; initially some processes have it mapped, and some do not.
        case replaced
        /// Initially there is no control file and no process has one mapped; then one is made.
        case made
    }

    /// The concurrent work of gc.
    enum Collector: UInt8 { case none, sweeps, sweepsAndReclaims }

    /// A writer's call and the process that makes it.
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

    /// Two writers, two readers, and concurrent activities.
    struct Model: Hashable {
        typealias State = GenerationModel.State
        typealias Move = GenerationModel.Move
        typealias Writer = GenerationModel.Writer
        typealias Reader = GenerationModel.Reader

        let first: Call
        let second: Call
        /// The process of each of the one or two readers, 0 or 1.
        let readers: [UInt8]
        let setting: Setting
        let collector: Collector
        /// Whether processes hold absences in memory.
        let keepsAbsences: Bool
        let change: Change?
        let writerSteps: [WriterStep]
        let readerSteps: [ReaderStep]
        /// The successor of each of `readerSteps`, indexed by the step's raw value.
        let readerStepAfter: [ReaderStep]
        /// The first of `readerSteps` that does not check a copy in memory.
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

    /// The event that leads from one state to the next.
    enum Move: UInt8 {
        case writer0, writer1, reader0, reader1, sweep, rebuild
        case reclaim, remap0, remap1
        case crash0, crash1, crash2, crashOfSweep, crashOfRebuild
    }
}

extension GenerationModel.Model: ExploredModel {
    /// States with warm and cold memory tiers; if the control file is replaced, also with one process without a mapping.
    ///
    /// There is an entry initially; reclaiming it covers the states that begin without an entry.
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

    /// SIGKILL during a write: the memory tier is lost, the kernel unlocks the stripe, the count in the word stays.
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

    /// Sorts two readers in one process, which are interchangeable: of two states that differ only in this, one suffices.
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
