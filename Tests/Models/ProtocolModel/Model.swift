// SPDX-License-Identifier: Apache-2.0

extension ProtocolModel {
    /// A deliberate mistake in the protocol, to show that the model would notice it.
    enum Change: UInt8 {
        /// Gc scans the entries straight after its stamp.
        case withoutBarrier
        /// The barrier comes first, then the stamp.
        case stampAfterBarrier
        /// Gc gives up the barrier of a stripe that stays held, and sweeps its objects all the same.
        case sweepOfSkippedStripe
        /// A put that finds its object leaves its ctime alone.
        case putWithoutTouch
        /// A put that has seen its object without the stripe goes on under it although the touch misses.
        case putTrustsLook
        /// A put holds the object stripe only while it touches or links its object.
        case objectUnlockedBeforePublishing
        /// A put takes no entry stripe.
        case putWithoutEntryLock
        /// `setExpiration` leaves the object's ctime alone.
        case expirationWithoutTouch
        /// `setExpiration` replaces whatever record is there.
        case expirationWithoutCompare
        /// Gc deletes an unmarked object without looking at its ctime again under the stripe.
        case deletionWithoutSecondLook
        /// Gc deletes an entry without comparing it with the plan under the stripe.
        case deletionWithoutCheck
        /// A planned entry whose stripe stays held is left alone, but does not mark its object.
        case skippedEntryUnmarked
        /// Gc takes the first time that it reads for its stamp.
        case stampWithoutWaiting
        /// Gc deletes objects as old as the stamp too, not only older ones.
        case stampIncluded
        /// A thread of gc does not wait for what the other reads.
        case entriesNotAwaited
        /// A thread of gc does not wait until the other knows which entries have stayed after all.
        case deletionsNotAwaited
        /// A thread of gc marks only what it will itself decide about.
        case marksNotShared
        /// Gc lists the objects before it reads the entries: makes no difference.
        case objectsListedFirst
        /// The same, and it deletes what looks dangling then without a look at the object under the stripe.
        case objectsListedFirstWithoutLook
    }

    /// Two writers, a gc and the world that they run in.
    struct Model: Hashable {
        typealias State = ProtocolModel.State
        typealias Writer = ProtocolModel.Writer
        typealias WriterStep = ProtocolModel.WriterStep
        typealias CollectorStep = ProtocolModel.CollectorStep
        typealias Entry = ProtocolModel.Entry
        typealias Record = ProtocolModel.Record
        typealias Key = ProtocolModel.Key
        typealias Content = ProtocolModel.Content
        typealias Hold = ProtocolModel.Hold
        typealias Move = ProtocolModel.Move

        var first: Program
        var second: Program
        /// Whether the two contents, and the two keys, have stripes of their own.
        var separateStripes = false
        /// Writers (bit mask) that take their object and entry for new, and look for neither before they make it.
        var guessing: UInt8 = 0
        var change: Change?
        /// Gc may give up a stripe that is held, as it does after a bounded wait behind a stopped process.
        var skipsHeldStripes = true
        /// Of gc, once the barrier is passed: 1 or 2.
        var threads: UInt8 = 1
        /// How often gc runs; the next pass starts any time after the one before has ended or died.
        var passes: UInt8 = 1
        /// The wall clock may be set back, once, between the stamp and the end of the pass.
        var clockMayBeSetBack = false
        /// Gc deletes no object once the clock has been set back.
        var noticesClockSet = false

        var listsObjectsFirst: Bool {
            change == .objectsListedFirst || change == .objectsListedFirstWithoutLook
        }

        var objectStripes: UInt8 { separateStripes ? 2 : 1 }
        func stripe(of content: Content) -> UInt8 { separateStripes ? content.rawValue : 0 }
        func stripe(of key: Key) -> UInt8 { separateStripes ? key.rawValue : 0 }
    }

    /// Who moves from one state to the next.
    enum Move: UInt8 {
        case writer0, writer1, gc, nextPass, crashOfWriter0, crashOfWriter1, crashOfGC, tick, clockSetBack
    }

    /// What must hold, and in which states.
    enum Property {
        /// In every state any record names a present object, also that of a put that goes on or has died.
        case recordNamesObject
        /// In every state a record published by a put that has returned names a present object.
        case returnedPutKeepsObject
        /// At the end a returned call is in force: the record of a put is there; so is the one that
        /// `setExpiration` wrote; after a remove there is none.
        ///
        /// A put or remove of the same key that overlaps or follows may change that, but after two puts one
        /// of them is in force. A `setExpiration` may not: it keeps contents and brings none back. Left out
        /// are records that gc planned to delete.
        case returnedCallKeepsRecord
        /// After every end, one undisturbed gc leaves only entries with records, and exactly their objects.
        case gcLeavesNothing
        /// In every state that is not an end some process, or the tick that gc waits for, goes on.
        case someoneGoesOn
    }
}

extension ProtocolModel.Model {
    /// Empty; k1 -> A; A unreferenced; k1 without a record; k1 and k2 -> A.
    ///
    /// All is freshly written; a tick at once makes it old.
    var initialStates: [State] {
        let empty = State(
            writer0: .init(step: first.firstStep),
            writer1: .init(step: second.firstStep),
            collector: .init(step: firstCollectorStep)
        )
        var orphan = empty
        orphan.objectA = .present
        var referenced = orphan
        referenced.entry1 = Entry(inode: 1, record: .init(.a, by: nil))
        var shared = referenced
        shared.entry2 = Entry(inode: 1, record: .init(.a, by: nil))
        var withoutRecord = empty
        withoutRecord.entry1 = Entry(inode: 1)
        return [empty, referenced, orphan, withoutRecord, shared]
    }

    /// Adds the states that one step, one crash or one tick leads to, and in the same order who made it.
    func addSuccessors(of state: State, to next: inout [State], by moves: inout [Move]) {
        addSteps(of: state, to: &next, by: &moves)
        addCrashes(of: state, to: &next, by: &moves)
        guard state.collector.step != .ended else {
            guard state.collector.pass &+ 1 < passes else { return }
            next.append(state)
            next[next.count &- 1].clock = .present
            next[next.count &- 1].collector = .init(step: firstCollectorStep, pass: state.collector.pass &+ 1)
            moves.append(.nextPass)
            return
        }
        if clockMayBeSetBack && state.collector.hasStamp && !state.collector.sawClockSet {
            var earlier = state
            earlier.clock = .past
            earlier.collector.sawClockSet = true
            next.append(earlier)
            moves.append(.clockSetBack)
        }
        if let later = afterTick(state) {
            next.append(later)
            moves.append(.tick)
        }
    }

    private func addSteps(of state: State, to next: inout [State], by moves: inout [Move]) {
        var copy = state
        if advance(writer: 0, in: &copy) {
            next.append(copy)
            moves.append(.writer0)
        }
        copy = state
        if advance(writer: 1, in: &copy) {
            next.append(copy)
            moves.append(.writer1)
        }
        advanceCollector(from: state, into: &next)
        while moves.count < next.count { moves.append(.gc) }
    }

    /// SIGKILL: the process takes no further step and the kernel releases its locks.
    private func addCrashes(of state: State, to next: inout [State], by moves: inout [Move]) {
        if state.writer0.step != .ended {
            next.append(state)
            next[next.count &- 1].writer0.end(returning: false)
            moves.append(.crashOfWriter0)
        }
        if state.writer1.step != .ended {
            next.append(state)
            next[next.count &- 1].writer1.end(returning: false)
            moves.append(.crashOfWriter1)
        }
        if state.collector.step != .ended {
            next.append(state)
            next[next.count &- 1].end()
            moves.append(.crashOfGC)
        }
    }

    /// The clock goes on; nil where that makes no difference.
    ///
    /// After the stamp it makes one only where times equal to the stamp are treated in a way of their own, or
    /// where the clock had been set back.
    func afterTick(_ state: State) -> State? {
        var later = state
        if state.collector.hasStamp {
            switch state.clock {
            case .past: later.clock = .present
            case .present where change == .stampIncluded: later.clock = .future
            default: return nil
            }
            return later
        }
        if later.objectA == .present { later.objectA = .past }
        if later.objectB == .present { later.objectB = .past }
        if later.collector.firstReading == .present { later.collector.firstReading = .past }
        return later == state ? nil : later
    }
}

extension ProtocolModel.Program: CustomStringConvertible {
    var description: String {
        switch self {
        case .put(let key, let content): "put(\(key), \(content))"
        case .remove(let key): "remove(\(key))"
        case .setExpiration(let key): "setExpiration(\(key))"
        }
    }
}

extension ProtocolModel.Model: CustomStringConvertible {
    var description: String {
        "\(first.description) + \(second.description)" + (separateStripes ? ", separate stripes" : "")
            + (threads > 1 ? ", two threads" : "")
    }
}
