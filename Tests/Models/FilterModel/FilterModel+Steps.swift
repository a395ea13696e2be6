// SPDX-License-Identifier: Apache-2.0

extension FilterModel.Model {
    /// Takes the next step of a put.
    func advanceWriter(in state: inout State) -> Bool {
        var me = state.writer
        switch writerSteps[Int(me.taken)] {
        case .lock: me.holdsStripe = true
        case .look:
            if !state.isUsable(state.writerMapped) {
                state.writerMapped = state.isUsable(state.path) ? state.path : .none
            }
            me.file = state.writerMapped
        case .mark: state[me.file].hasBits = true
        case .publish: state.isOnDisk = true
        case .end: state.isSeen = true
        }
        me.taken += 1
        state.writer = Int(me.taken) == writerSteps.count ? FilterModel.Writer() : me
        return true
    }

    /// Takes the next step of a get, which checks the file's phase, the seal and the bits.
    ///
    /// A read that has to check the disk ends here.
    func advanceReader(in state: inout State) -> Bool {
        var me = state.reader
        switch me.step {
        case .start:
            me.mustFind = state.isSeen
            me.file = me.mapped
            let counts = state[me.file].phase == .ready || mistake == .phaseUnchecked
            me.step = counts && me.file != .none ? .seal : .start
        case .seal:
            me.step = state[me.file].isComplete || mistake == .sealUnchecked ? .bits : .start
        case .bits:
            if !state[me.file].hasBits && me.mustFind { state.isBroken = true }
            me.step = .start
        }
        state.reader = me.step == .start ? FilterModel.Reader(mapped: me.mapped) : me
        return true
    }

    /// Takes the next step of a sweep: starts with a ready file; lists the entry and sets its bits; seals the filter.
    func sweep(in state: inout State) -> Bool {
        switch state.sweep {
        case .idle:
            let phase = state[state.sweeperMapped].phase
            guard phase == .ready || (phase == .forming && mistake == .begunWhileForming) else {
                return false
            }
            state.sweptFile = state.sweeperMapped
            if mistake == .sealedBeforeListing { state[state.sweptFile].isComplete = true }
            state.sweep = .begun
        case .begun:
            if state.isOnDisk { state[state.sweptFile].hasBits = true }
            state.sweep = .listed
        case .listed:
            let file = mistake == .sealedInAnother ? state.sweeperMapped : state.sweptFile
            state[file].isComplete = true
            state.sweep = .idle
            state.sweptFile = .none
        }
        return true
    }

    /// Takes the next step of a rebuild: marks the first file, renames the second one over it, passes the barrier, marks it
    /// ready.
    func rebuild(in state: inout State) -> Bool {
        switch state.rebuild {
        case .none:
            guard state.second.phase != .ready else { return false }
            if state.path == .second {
                state.rebuild = .renamed
                return true
            }
            if state.first.phase != .missing, mistake != .neverSuperseded { state.first.phase = .superseded }
            state.rebuild = .superseded
        case .superseded:
            state.path = .second
            let isComplete = mistake == .rebuiltComplete
            state.second = FilterModel.Control(phase: .forming, isComplete: isComplete)
            state.rebuild = mistake == .readyWithoutBarrier ? .passedBarrier : .renamed
        case .renamed:
            guard !state.writer.holdsStripe else { return false }
            state.rebuild = .passedBarrier
        case .passedBarrier:
            state.second.phase = .ready
            state.rebuild = .none
        }
        return true
    }
}
