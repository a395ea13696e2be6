// SPDX-License-Identifier: Apache-2.0

extension GenerationModel {
    /// The steps of a writer, in order.
    enum WriterStep: UInt8, CaseIterable {
        /// flock the entry stripe, shared; one step with the next.
        case lock
        /// Look up the control file: one atomic load if the mapped one is not superseded.
        case look
        /// Add itself to the writers of the word: one atomic addition.
        case begin
        /// setxattr or unlinkat: the commit.
        case publish
        /// Raise the version and remove itself: one atomic addition.
        case end
        /// Unlock the stripe; one step with the previous one.
        case unlock
        /// Keep a put's value in its process's memory tier, if allowed; the call returns.
        case keep

        // Only in changes.
        /// Raise the version.
        case raise
        /// Remove itself from the writers of the word.
        case takeOff
        /// Load the word that `store` then stores with a higher version and without itself.
        case load
        /// See `load`.
        case store

        static func sequence(_ setting: Setting, _ change: Change?) -> [WriterStep] {
            let steps: [WriterStep] =
                switch change {
                case .endBeforePublishing: [.lock, .look, .begin, .end, .publish, .unlock, .keep]
                case .addedBeforeLocking: [.look, .begin, .lock, .publish, .end, .unlock, .keep]
                case .unlockedBeforeEnd: [.lock, .look, .begin, .publish, .unlock, .end, .keep]
                case .takenOffBeforeRaising:
                    [.lock, .look, .begin, .publish, .takeOff, .raise, .unlock, .keep]
                case .raisedBeforeTakingOff:
                    [.lock, .look, .begin, .publish, .raise, .takeOff, .unlock, .keep]
                case .raisedAtBeginning: [.lock, .look, .begin, .publish, .takeOff, .unlock, .keep]
                case .endNotAtomic: [.lock, .look, .begin, .publish, .load, .store, .unlock, .keep]
                case .lookedBeforeLocking: [.look, .lock, .begin, .publish, .end, .unlock, .keep]
                default: [.lock, .look, .begin, .publish, .end, .unlock, .keep]
                }
            return setting == .kept ? steps.filter { $0 != .look } : steps
        }
    }
}

extension GenerationModel.Model {
    /// Takes the next step of a writer; returns false if it waits for the sweep or has ended.
    func advance(writer index: UInt8, in state: inout State) -> Bool {
        var me = state[writer: index]
        guard me.next < writerSteps.count else { return false }
        if me.next == 0 { me.file = state[process: call(index).process].file }
        if writerSteps[Int(me.next)] == .lock {
            guard !state.isSweeping || change == .sweepWithoutStripe else { return false }
            me.holdsStripe = true
            me.next &+= 1
        }
        take(writerSteps[Int(me.next)], by: &me, index, in: &state)
        me.next &+= 1
        if me.next < writerSteps.count && writerSteps[Int(me.next)] == .unlock {
            me.holdsStripe = false
            me.next &+= 1
        }
        if me.next < writerSteps.count && writerSteps[Int(me.next)] == .keep && !me.mayHold { me.next &+= 1 }
        if me.next == writerSteps.count {
            let key = call(index).key
            state[key].floor = max(state[key].floor, me.number)
            me = .ended
        }
        state[writer: index] = me
        return true
    }

    private func take(
        _ step: GenerationModel.WriterStep,
        by me: inout Writer,
        _ index: UInt8,
        in state: inout State
    ) {
        let call = call(index)
        switch step {
        case .lock, .unlock: break
        case .look: look(from: call.process, by: &me, in: &state)
        case .publish:
            state[call.key].published &+= 1
            me.number = state[call.key].published
            me.hasFoundNothing = call.kind == .remove && state[call.key].disk == 0
            state[call.key].disk = call.kind == .put ? me.number : 0
        case .keep: state[process: call.process][call.key] = .init(number: me.number, word: me.word)
        case .begin, .raise, .takeOff, .end, .load, .store:
            guard me.file != .none else { return }
            changeWord(step, by: &me, call, in: &state)
        }
    }

    /// Maps the control file that the path leads to, under the stripe lock, unless the mapped one is still valid.
    private func look(from process: UInt8, by me: inout Writer, in state: inout State) {
        me.file = state[process: process].file
        switch state[me.file].phase {
        case .forming, .ready: return
        case .missing, .superseded: break
        }
        if change == .publishedWithoutLook && me.file == .none { return }
        me.file = state.hasUsablePath || change == .wordsClosedAndRaised ? state.path : .none
        map(me.file, in: process, &state)
    }

    private func changeWord(
        _ step: GenerationModel.WriterStep,
        by me: inout Writer,
        _ call: GenerationModel.Call,
        in state: inout State
    ) {
        var word = step == .store ? me.word : state[me.file].word
        switch step {
        case .begin:
            me.mayHold = word.writers == 0
            if change != .writerNotAdded { word.add() }
            if change == .raisedAtBeginning { word.raise() }
        case .raise:
            word.raise()
        case .load:
            me.mayHold = false
            me.word = word
            return
        case .takeOff, .end, .store:
            let isAlone = word == me.word
            let leavesVersion = change == .versionLeftIfNothingRemoved && me.hasFoundNothing
            if step != .takeOff && !leavesVersion { word.raise() }
            if change != .writerNotAdded { word.takeOff() }
            me.mayHold = mayHold(me, isAlone: isAlone, word, call, in: state)
        default: break
        }
        me.word = word
        state[me.file].word = word
    }

    /// Whether a put may keep its value in memory under the word that it leaves.
    private func mayHold(
        _ me: Writer,
        isAlone: Bool,
        _ word: GenerationModel.Word,
        _ call: GenerationModel.Call,
        in state: State
    ) -> Bool {
        guard call.kind == .put && call.process < 2 else { return false }
        switch change {
        case .takenOffBeforeRaising, .raisedBeforeTakingOff, .endNotAtomic: return false
        default: break
        }
        let isReady = state[me.file].phase == .ready || change == .ownValueHeldWhileForming
        switch change {
        case .ownValueUnchecked: return isReady
        case .ownValueCheckedAtBeginning: return isReady && me.mayHold
        case .ownValueCheckedAtEnd: return isReady && word.writers == 0
        default: return isReady && me.mayHold && isAlone
        }
    }
}
