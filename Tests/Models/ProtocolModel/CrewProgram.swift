// SPDX-License-Identifier: Apache-2.0

/// A pass of gc by two threads: the part after the barrier, which one thread passes alone.
///
/// Each thread has a key, whose entry it reads and deletes, and a content, whose object it lists and deletes; between
/// the parts of the pass the threads wait for each other. As their speeds are arbitrary, this covers every order of
/// reading, and one thread that does both. The threads share their findings.
///
/// Unlike in the pass of one thread, an expired entry may be deleted as soon as it is read, and an entry whose object
/// was not listed is deleted as dangling, although it was not planned for deletion.
extension ProtocolModel {
    /// The private state of a gc thread.
    struct Thread: Hashable {
        var step = CollectorStep.ended
        var objectLock = Hold.none
        var entryLock = Hold.none
        /// Whether it deletes the entry that it has just read.
        var isReading = false
    }
}

extension ProtocolModel.State {
    subscript(thread index: UInt8) -> ProtocolModel.Thread {
        get { index == 0 ? collector.thread : helper }
        set { if index == 0 { collector.thread = newValue } else { helper = newValue } }
    }
}

extension ProtocolModel.Model {
    private typealias Thread = ProtocolModel.Thread

    var isCrew: Bool { threads > 1 }

    private var firstCrewStep: CollectorStep { listsObjectsFirst ? .noteObject : .scan }

    /// Starts both threads, after the barrier.
    func startCrew(in state: inout State) {
        state.collector.step = firstCrewStep
        state.helper.step = firstCrewStep
    }

    /// Adds every state that the next step of either thread can lead to.
    func advanceCrew(from state: State, into next: inout [State]) {
        for index: UInt8 in 0...1 { advance(thread: index, from: state, into: &next) }
    }

    private func advance(thread index: UInt8, from state: State, into next: inout [State]) {
        switch state[thread: index].step {
        case .scan: read(by: index, from: state, into: &next)
        case .lockEntry, .checkEntry, .unlinkEntry, .unlockEntry:
            deleteEntry(by: index, from: state, into: &next)
        case .lockObject, .lookAgain, .unlinkObject, .unlockObject:
            deleteObject(by: index, from: state, into: &next)
        case .noteObject:
            var state = state
            if state[index == 0 ? Content.a : .b] != .absent { state.collector.listed |= 1 &<< index }
            state[thread: index].step = listsObjectsFirst ? .scan : .joinAfterListing
            next.append(state)
        case .joinAfterScan, .joinAfterListing, .joinAfterEntries, .joinAtEnd:
            join(index, from: state, into: &next)
        default: break
        }
    }

    /// Reads one entry, which is deleted at once if expired, or later, or is kept and marks its object.
    private func read(by index: UInt8, from state: State, into next: inout [State]) {
        let key: Key = index == 0 ? .k1 : .k2
        let entry = state[key]
        var read = state
        read.collector.unlisted &= ~(1 &<< index)
        read[thread: index].step = .joinAfterScan
        if entry.isAbsent || state.collector.unlisted & (1 &<< index) != 0 { next.append(read) }
        guard !entry.isAbsent else { return }
        read.collector[planned: key] = entry
        next.append(read)
        guard !entry.record.isNone else { return }
        var expired = read
        expired[thread: index].step = .lockEntry
        expired[thread: index].isReading = true
        next.append(expired)
        mark(entry.record, by: index, in: &read)
        read.collector.kept |= 1 &<< index
        next.append(read)
    }

    private func mark(_ record: Record, by index: UInt8, in state: inout State) {
        // A mark for the other thread's content is lost.
        if change == .marksNotShared, record.content != (index == 0 ? .a : .b) { return }
        state.collector.mark(record)
    }

    /// Lets both threads continue once both have reached the same step.
    private func join(_ index: UInt8, from state: State, into next: inout [State]) {
        let step = state[thread: index].step
        let waits =
            switch step {
            case .joinAfterScan, .joinAfterListing: change != .entriesNotAwaited
            case .joinAfterEntries: change != .entriesNotAwaited && change != .deletionsNotAwaited
            default: true
            }
        if !waits {
            var state = state
            goOn(index, after: step, in: &state)
            next.append(state)
        } else if index == 0, state.helper.step == step {
            var state = state
            for index: UInt8 in 0...1 { goOn(index, after: step, in: &state) }
            if step == .joinAtEnd { state.end() }
            next.append(state)
        }
    }

    private func goOn(_ index: UInt8, after step: CollectorStep, in state: inout State) {
        let key: Key = index == 0 ? .k1 : .k2
        switch step {
        case .joinAfterScan where !listsObjectsFirst: state[thread: index].step = .noteObject
        case .joinAfterScan, .joinAfterListing:
            let entry = state.collector[planned: key]
            let isListed = state.collector.listed & (1 &<< entry.record.content.rawValue) != 0
            if state.collector.kept & (1 &<< index) != 0, isListed { state.collector[planned: key] = .absent }
            let isLeft = state.collector[planned: key].isAbsent
            state[thread: index].step = isLeft ? .joinAfterEntries : .lockEntry
        case .joinAfterEntries:
            let content: Content = index == 0 ? .a : .b
            let isSkipped = state.collector.skipped & (1 &<< stripe(of: content)) != 0
            let isWanted = state.collector.listed & (1 &<< index) != 0 && !state.collector.marks(content)
            state[thread: index].step = isWanted && !isSkipped ? .lockObject : .joinAtEnd
        default: break
        }
    }

    private func deleteEntry(by index: UInt8, from state: State, into next: inout [State]) {
        var state = state
        var me = state[thread: index]
        let key: Key = index == 0 ? .k1 : .k2
        let planned = state.collector[planned: key]
        switch me.step {
        case .lockEntry:
            let hold = Hold.exclusive(stripe(of: key))
            if state.grants(entry: hold, to: 2 &+ index) {
                me.entryLock = hold
                me.step = .checkEntry
            } else {
                // The other gc thread is not a stopped process, so it is waited for.
                let isHeld = hold.excludes(state.writer0.entryLock) || hold.excludes(state.writer1.entryLock)
                guard skipsHeldStripes, isHeld else { return }
                mark(planned.record, by: index, in: &state)
                forgetPlan(of: key, &me, index, in: &state)
            }
        case .checkEntry:
            let isSame = state[key] == planned && !isRestored(key, in: state)
            if !isSame { mark(state[key].record, by: index, in: &state) }
            me.step = isSame ? .unlinkEntry : .unlockEntry
        case .unlinkEntry:
            // The deletion of a dangling entry was not planned.
            if state.collector.kept & (1 &<< index) == 0 { noteTrim(of: planned.record, in: &state) }
            state[key] = .absent
            me.step = .unlockEntry
        default:
            me.entryLock = .none
            forgetPlan(of: key, &me, index, in: &state)
        }
        state[thread: index] = me
        next.append(state)
    }

    /// Whether an entry that appeared dangling has its object now.
    private func isRestored(_ key: Key, in state: State) -> Bool {
        let isDangling = state.collector.kept & (1 &<< key.rawValue) != 0
        guard isDangling, change != .objectsListedFirstWithoutLook else { return false }
        return state[state.collector[planned: key].record.content] != .absent
    }

    private func forgetPlan(
        of key: Key,
        _ me: inout ProtocolModel.Thread,
        _ index: UInt8,
        in state: inout State
    ) {
        state.collector[planned: key] = .absent
        state.collector.kept &= ~(1 &<< index)
        me.step = me.isReading ? .joinAfterScan : .joinAfterEntries
        me.isReading = false
    }

    private func deleteObject(by index: UInt8, from state: State, into next: inout [State]) {
        var state = state
        var me = state[thread: index]
        let content: Content = index == 0 ? .a : .b
        switch me.step {
        case .lockObject:
            let hold = Hold.exclusive(stripe(of: content))
            if state.grants(object: hold, to: 2 &+ index) {
                me.objectLock = hold
                me.step = .lookAgain
            } else {
                let isHeld =
                    hold.excludes(state.writer0.objectLock) || hold.excludes(state.writer1.objectLock)
                guard skipsHeldStripes, isHeld else { return }
                me.step = .joinAtEnd
            }
        case .lookAgain:
            me.step = state[content] == .past ? .unlinkObject : .unlockObject
        case .unlinkObject:
            state[content] = .absent
            me.step = .unlockObject
        default:
            me.objectLock = .none
            me.step = .joinAtEnd
        }
        state[thread: index] = me
        next.append(state)
    }
}
