// SPDX-License-Identifier: Apache-2.0

extension ProtocolModel.Model {
    /// Whether every record, or every record whose put has returned, names a present object.
    func recordsNameObjects(in state: State, onlyReturned: Bool) -> Bool {
        namesObject(state.entry1.record, in: state, onlyReturned: onlyReturned)
            && namesObject(state.entry2.record, in: state, onlyReturned: onlyReturned)
    }

    private func namesObject(_ record: Record, in state: State, onlyReturned: Bool) -> Bool {
        if record.isNone || state[record.content] != .absent { return true }
        guard onlyReturned, let writer = record.origin else { return false }
        return !state[writer: writer].hasReturned
    }

    /// Whether, in a terminal state, both writers' calls are still in force, if they returned undisturbed.
    func returnedCallsKeepRecords(in state: State) -> Bool {
        keepsRecord(0, in: state) && keepsRecord(1, in: state)
    }

    private func keepsRecord(_ index: UInt8, in state: State) -> Bool {
        let (me, rival) = (state[writer: index], state[writer: 1 &- index])
        let (mine, other) = index == 0 ? (first, second) : (second, first)
        guard me.hasReturned && !me.wasTrimmed else { return true }
        let record = state[mine.key].record
        if !me.startedLast && other.displacesRecords && other.key == mine.key {
            guard case .put = mine, case .put = other else { return true }
            return rival.wasTrimmed || (!record.isNone && record.origin != nil)
        }
        switch mine {
        case .put(_, let content): return record.names(content) && record.origin == index
        case .setExpiration: return !me.hasRewritten || record.isRewritten(by: index)
        case .remove: return state[mine.key].isAbsent
        }
    }

    /// Returns every disk that one more undisturbed gc can leave after this terminal state.
    func disksAfterCleanGC(of state: State) -> [State] {
        var pending = [disk(of: state)]
        pending[0].collector = .init(step: firstCollectorStep)
        var results: [State] = []
        while let current = pending.popLast() {
            let count = pending.count
            advanceCollector(from: current, into: &pending)
            if current.collector.step == .ended {
                results.append(current)
            } else if pending.count == count, let later = afterTick(current) {
                pending.append(later)
            }
        }
        return results
    }

    /// Returns the state with all processes ended, and with an unmoved clock if that is possible.
    func disk(of state: State) -> State {
        var disk = State(
            writer0: .init(step: .ended),
            writer1: .init(step: .ended),
            collector: .init(step: .ended)
        )
        (disk.entry1, disk.entry2) = (state.entry1, state.entry2)
        disk.objectA = state.objectA == .future ? .present : state.objectA
        disk.objectB = state.objectB == .future ? .present : state.objectB
        return disk
    }

    /// Whether there is no entry without a record, no object without an entry, and no entry without its object.
    func isClean(_ state: State) -> Bool {
        let (one, two) = (state.entry1, state.entry2)
        guard one.isAbsent || !one.record.isNone, two.isAbsent || !two.record.isNone else { return false }
        let needsA = one.record.names(.a) || two.record.names(.a)
        let needsB = one.record.names(.b) || two.record.names(.b)
        return (state.objectA != .absent) == needsA && (state.objectB != .absent) == needsB
    }
}
