// SPDX-License-Identifier: Apache-2.0

extension ProtocolModel {
    /// The system calls of gc; each case is the next one.
    enum CollectorStep: UInt8, CaseIterable {
        /// Touch a file of the cache and stat it.
        case readStamp
        /// Repeat until the time differs: this is the stamp, later than all earlier operations.
        case waitForTick
        /// flock one object stripe, exclusive: every put that touched before the stamp has published or died.
        case lockBarrier
        /// Release it at once.
        case unlockBarrier
        /// Find one name in the listing and read its inode and record, without a lock.
        case scan
        /// flock the stripe of an entry to be deleted, exclusive.
        case lockEntry
        /// Read inode and record again and compare them with the plan.
        case checkEntry
        /// unlinkat.
        case unlinkEntry
        /// Unlock the entry stripe.
        case unlockEntry
        /// Find one object in the listing; an object that an entry marked is kept.
        case listObject
        /// flock its stripe, exclusive.
        case lockObject
        /// stat: check that its ctime is older than the stamp.
        case lookAgain
        /// unlinkat.
        case unlinkObject
        /// Unlock the object stripe.
        case unlockObject
        /// The pass is over, or gc has died.
        case ended

        // Only with two threads.
        /// Find one object in the listing, or not.
        case noteObject
        /// Wait until all entries are read.
        case joinAfterScan
        /// Wait until all objects are listed.
        case joinAfterListing
        /// Wait until all planned entries are deleted or spared.
        case joinAfterEntries
        /// Wait for the other thread; the pass is over.
        case joinAtEnd
    }
}

extension ProtocolModel.Model {
    /// Adds every state that the next step of gc can lead to, or none if it waits or has ended.
    func advanceCollector(from state: State, into next: inout [State]) {
        if state.helper.step != .ended { return advanceCrew(from: state, into: &next) }
        switch state.collector.step {
        case .readStamp, .waitForTick: takeStamp(from: state, into: &next)
        case .lockBarrier, .unlockBarrier: passBarrier(from: state, into: &next)
        case .scan: scan(from: state, into: &next)
        case .lockEntry, .checkEntry, .unlinkEntry, .unlockEntry: deleteEntry(from: state, into: &next)
        case .listObject, .lockObject: findObject(from: state, into: &next)
        case .lookAgain, .unlinkObject, .unlockObject: deleteObject(from: state, into: &next)
        case .ended, .noteObject, .joinAfterScan, .joinAfterListing, .joinAfterEntries, .joinAtEnd: break
        }
    }

    var firstCollectorStep: CollectorStep {
        change == .stampAfterBarrier ? .lockBarrier : .readStamp
    }

    /// The stamp: touch a file of the cache and stat it until its time differs from the first one read.
    private func takeStamp(from state: State, into next: inout [State]) {
        var state = state
        if state.collector.step == .readStamp && change != .stampWithoutWaiting {
            state.collector.firstReading = state.clock
            state.collector.step = .waitForTick
        } else {
            guard state.collector.firstReading != state.clock else { return }
            state.collector.firstReading = .absent
            state.collector.hasStamp = true
            let goesToScan = change == .stampAfterBarrier || change == .withoutBarrier
            state.collector.step = goesToScan ? .scan : .lockBarrier
            if goesToScan && isCrew { startCrew(in: &state) }
        }
        next.append(state)
    }

    /// The barrier: lock each object stripe once exclusively; a stripe that stays held may be skipped.
    private func passBarrier(from state: State, into next: inout [State]) {
        var state = state
        let hold = Hold.exclusive(state.collector.cursor)
        if state.collector.step == .unlockBarrier {
            state.collector.objectLock = .none
            finishBarrier(in: &state)
        } else if state.grants(object: hold, to: 2) {
            state.collector.objectLock = hold
            state.collector.step = .unlockBarrier
        } else {
            guard skipsHeldStripes else { return }
            if change != .sweepOfSkippedStripe { state.collector.skipped |= 1 &<< state.collector.cursor }
            finishBarrier(in: &state)
        }
        next.append(state)
    }

    private func finishBarrier(in state: inout State) {
        state.collector.cursor &+= 1
        if state.collector.cursor < objectStripes {
            state.collector.step = .lockBarrier
        } else {
            state.collector.cursor = 0
            state.collector.step = state.collector.hasStamp ? .scan : .readStamp
            if state.collector.hasStamp && isCrew { startCrew(in: &state) }
        }
    }

    /// Reads one entry, which is then planned for deletion or marks its object.
    ///
    /// An entry without a record is always deleted; any other may be, because it has expired or to free space: both cases
    /// are explored.
    private func scan(from state: State, into next: inout [State]) {
        let key: Key = state.collector.cursor == 0 ? .k1 : .k2
        let entry = state[key]
        let isUnlisted = state.collector.unlisted & (1 &<< key.rawValue) != 0
        if entry.isAbsent || isUnlisted { next.append(afterScan(of: key, in: state)) }
        guard !entry.isAbsent else { return }
        var deleting = state
        deleting.collector[planned: key] = entry
        next.append(afterScan(of: key, in: deleting))
        if !entry.record.isNone {
            var keeping = state
            keeping.collector.mark(entry.record)
            next.append(afterScan(of: key, in: keeping))
        }
    }

    private func afterScan(of key: Key, in state: State) -> State {
        var state = state
        state.collector.unlisted &= ~(1 &<< key.rawValue)
        if key == .k1 {
            state.collector.cursor = 1
        } else {
            goToNextEntry(in: &state)
        }
        return state
    }

    private func goToNextEntry(in state: inout State) {
        if !state.collector.planned1.isAbsent {
            state.collector.cursor = 0
            state.collector.step = .lockEntry
        } else if !state.collector.planned2.isAbsent {
            state.collector.cursor = 1
            state.collector.step = .lockEntry
        } else {
            state.collector.cursor = 0
            state.collector.step = .listObject
        }
    }

    /// Deletes a planned entry if it still matches the plan under its exclusive stripe; otherwise the entry marks its object.
    private func deleteEntry(from state: State, into next: inout [State]) {
        var state = state
        let key: Key = state.collector.cursor == 0 ? .k1 : .k2
        switch state.collector.step {
        case .lockEntry:
            let hold = Hold.exclusive(stripe(of: key))
            if state.grants(entry: hold, to: 2) {
                state.collector.entryLock = hold
                state.collector.step = change == .deletionWithoutCheck ? .unlinkEntry : .checkEntry
            } else {
                guard skipsHeldStripes else { return }
                let record = state.collector[planned: key].record
                if change != .skippedEntryUnmarked { state.collector.mark(record) }
                forgetPlan(of: key, in: &state)
            }
        case .checkEntry:
            let isSame = state[key] == state.collector[planned: key]
            if !isSame { state.collector.mark(state[key].record) }
            state.collector.step = isSame ? .unlinkEntry : .unlockEntry
        case .unlinkEntry:
            noteTrim(of: state.collector[planned: key].record, in: &state)
            state[key] = .absent
            state.collector.step = .unlockEntry
        default:
            state.collector.entryLock = .none
            forgetPlan(of: key, in: &state)
        }
        next.append(state)
    }

    /// Ghost: notes that gc deleted this record as planned.
    func noteTrim(of record: Record, in state: inout State) {
        guard !record.isNone else { return }
        if record.origin == 0 || record.isRewritten(by: 0) { state.writer0.wasTrimmed = true }
        if record.origin == 1 || record.isRewritten(by: 1) { state.writer1.wasTrimmed = true }
    }

    private func forgetPlan(of key: Key, in state: inout State) {
        state.collector[planned: key] = .absent
        goToNextEntry(in: &state)
    }

    /// Lists one object and, if no entry marked it and its barrier was passed, locks its stripe exclusively.
    private func findObject(from state: State, into next: inout [State]) {
        var state = state
        let content: Content = state.collector.cursor == 0 ? .a : .b
        let stripe = stripe(of: content)
        if state.collector.step == .listObject {
            let isSkipped = state.collector.skipped & (1 &<< stripe) != 0
            if state[content] == .absent || state.collector.marks(content) || isSkipped {
                goToNextObject(in: &state)
            } else {
                state.collector.step = .lockObject
            }
        } else if state.grants(object: .exclusive(stripe), to: 2) {
            state.collector.objectLock = .exclusive(stripe)
            state.collector.step = change == .deletionWithoutSecondLook ? .unlinkObject : .lookAgain
        } else {
            guard skipsHeldStripes else { return }
            goToNextObject(in: &state)
        }
        next.append(state)
    }

    /// Checks the object again and deletes it only if its ctime is older than the stamp.
    private func deleteObject(from state: State, into next: inout [State]) {
        var state = state
        let content: Content = state.collector.cursor == 0 ? .a : .b
        switch state.collector.step {
        case .lookAgain:
            let isOld = state[content] == .past || (change == .stampIncluded && state[content] == .present)
            let isUntrusted = noticesClockSet && state.collector.sawClockSet
            state.collector.step = isOld && !isUntrusted ? .unlinkObject : .unlockObject
        case .unlinkObject:
            state[content] = .absent
            state.collector.step = .unlockObject
        default:
            state.collector.objectLock = .none
            goToNextObject(in: &state)
        }
        next.append(state)
    }

    private func goToNextObject(in state: inout State) {
        if state.collector.cursor == 0 {
            state.collector.marksA = false
            state.collector.cursor = 1
            state.collector.step = .listObject
        } else {
            state.collector.end()
        }
    }
}
