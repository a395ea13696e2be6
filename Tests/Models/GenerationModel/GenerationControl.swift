// SPDX-License-Identifier: Apache-2.0

extension GenerationModel {
    /// The last step of the process that rebuilds the control file under the format lock.
    enum RebuildStep: UInt8, CaseIterable {
        case none
        /// The old file is marked as superseded, or does not exist.
        case superseded
        /// Only in changes: its word is closed, too.
        case closed
        /// The path leads to the new file, which is forming.
        case renamed
        /// The stripe was locked exclusively once: every writer that looked before has ended or died.
        case passedBarrier
    }
}

extension GenerationModel.Model {
    /// Takes the next step of gc's sweep, which locks the stripe exclusively and reads the word.
    ///
    /// If the word has a count of writers, the sweep clears it and raises the version.
    func sweep(in state: inout State) -> Bool {
        if state.isSweeping {
            var word = state.sweptWord
            word.clear()
            if change != .sweepWithoutRaising { word.raise() }
            state[state.sweptFile].word = word
            endSweep(in: &state)
            return true
        }
        let file = state.path
        guard state.hasUsablePath, state[file].word.writers != 0 else { return false }
        guard !state.isStripeShared || change == .sweepWithoutStripe else { return false }
        state.isSweeping = true
        state.sweptFile = file
        state.sweptWord = state[file].word
        return true
    }

    func crashSweep(in state: inout State) -> Bool {
        guard state.isSweeping else { return false }
        endSweep(in: &state)
        return true
    }

    private func endSweep(in state: inout State) {
        state.isSweeping = false
        state.sweptFile = .none
        state.sweptWord = .start
    }

    /// Deletes the entry as gc does, with the stripe held exclusively; copies of it stay valid.
    func reclaim(in state: inout State) -> Bool {
        guard state.key1.disk != 0, !state.isStripeShared, !state.isSweeping else { return false }
        state.key1.disk = 0
        if change == .reclaimRaises && state.path != .none { state[state.path].word.raise() }
        return true
    }

    /// Takes the next step of the rebuild of the control file.
    ///
    /// If the rebuilding process has died, the next one continues where it stopped.
    func rebuild(in state: inout State) -> Bool {
        switch state.rebuild {
        case .none:
            guard state.second.phase != .ready else { return false }
            if state.path == .second {
                state.rebuild = change == .barrierNotRepeated ? .passedBarrier : .renamed
            } else {
                if change != .supersededAfterRename { supersede(in: &state) }
                state.rebuild = .superseded
            }
        case .superseded where change == .wordsClosed || change == .wordsClosedAndRaised:
            if state.first.phase != .missing { state.first.word.close() }
            state.rebuild = .closed
        case .superseded, .closed:
            state.path = .second
            let startsOver = change == .wordsStartOver || change == .wordsStartOverInClearedTier
            state.second = .init(phase: .forming, word: startsOver ? .start : .otherStart)
            state.rebuild = change == .readyWithoutBarrier ? .passedBarrier : .renamed
        case .renamed:
            guard !state.isStripeShared && !state.isSweeping else { return false }
            if change == .supersededAfterRename { supersede(in: &state) }
            state.rebuild = .passedBarrier
        case .passedBarrier:
            state.second.phase = .ready
            state.rebuild = .none
        }
        return true
    }

    private func supersede(in state: inout State) {
        guard change != .neverSuperseded, state.first.phase != .missing else { return }
        state.first.phase = .superseded
    }

    func crashRebuild(in state: inout State) -> Bool {
        guard state.rebuild != .none else { return false }
        state.rebuild = .none
        return true
    }

    /// Maps the control file that the path leads to, in a process whose readers have noticed that theirs is not usable.
    func remap(_ process: UInt8, in state: inout State) -> Bool {
        guard readers.contains(process), state.hasUsablePath else { return false }
        switch state[state[process: process].file].phase {
        case .forming, .ready: return false
        case .missing, .superseded: break
        }
        map(state.path, in: process, &state)
        return true
    }

    func map(_ file: GenerationModel.File, in process: UInt8, _ state: inout State) {
        if change == .wordsStartOverInClearedTier && state[process: process].file != file {
            state[process: process] = .init()
        }
        state[process: process].file = file
    }
}
