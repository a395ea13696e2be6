// SPDX-License-Identifier: Apache-2.0

extension ProtocolModel {
    /// A deviation from the protocol, in most cases a deliberate mistake that the model must detect.
    enum Change: UInt8 {
        /// Gc scans the entries directly after its stamp.
        case withoutBarrier
        /// The barrier comes first, then the stamp.
        case stampAfterBarrier
        /// Gc skips the barrier of a stripe that stays held, but sweeps its objects all the same.
        case sweepOfSkippedStripe
        /// A put that finds its object leaves its ctime alone.
        case putWithoutTouch
        /// A put that has seen its object without the stripe continues under it although the touch fails.
        case putTrustsLook
        /// A put holds the object stripe only while it touches or links its object.
        case objectUnlockedBeforePublishing
        /// A put takes no entry stripe.
        case putWithoutEntryLock
        /// `setExpiration` leaves the object's ctime alone.
        case expirationWithoutTouch
        /// `setExpiration` replaces any record without comparing it.
        case expirationWithoutCompare
        /// Gc deletes an unmarked object without checking its ctime again under the stripe.
        case deletionWithoutSecondLook
        /// Gc deletes an entry without comparing it with the plan under the stripe.
        case deletionWithoutCheck
        /// A planned entry whose stripe stays held is left alone, but does not mark its object.
        case skippedEntryUnmarked
        /// Gc uses the first time that it reads as its stamp.
        case stampWithoutWaiting
        /// Gc deletes objects as old as the stamp too, not only older ones.
        case stampIncluded
        /// A thread of gc does not wait until the other has read its entry and listed its object.
        case entriesNotAwaited
        /// A thread of gc does not wait until the other has deleted or spared its planned entries.
        case deletionsNotAwaited
        /// A thread of gc marks only the object that it decides about itself.
        case marksNotShared
        /// Gc lists the objects before it reads the entries; this makes no difference.
        case objectsListedFirst
        /// The same, and gc deletes entries that then appear dangling without a check of the object under the stripe.
        case objectsListedFirstWithoutLook
    }

    /// Two writers, a gc and their environment.
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
        /// Whether the two contents, and the two keys, have separate stripes.
        var separateStripes = false
        /// Writers (bit mask) that assume that their object and entry are new and check neither before creating it.
        var guessing: UInt8 = 0
        var change: Change?
        /// Whether gc may skip a stripe that is held, as it does after a bounded wait for a stopped process.
        var skipsHeldStripes = true
        /// The number of gc threads after the barrier: 1 or 2.
        var threads: UInt8 = 1
        /// The number of passes of gc; the next pass starts any time after the previous one has ended or died.
        var passes: UInt8 = 1
        /// Whether the wall clock may be set back, once, between the stamp and the end of the pass.
        var clockMayBeSetBack = false
        /// Whether gc detects that the clock was set back, and deletes no object from then on.
        var noticesClockSet = false

        var listsObjectsFirst: Bool {
            change == .objectsListedFirst || change == .objectsListedFirstWithoutLook
        }

        var objectStripes: UInt8 { separateStripes ? 2 : 1 }
        func stripe(of content: Content) -> UInt8 { separateStripes ? content.rawValue : 0 }
        func stripe(of key: Key) -> UInt8 { separateStripes ? key.rawValue : 0 }
    }

    /// The event that leads from one state to the next.
    enum Move: UInt8 {
        case writer0, writer1, gc, nextPass, crashOfWriter0, crashOfWriter1, crashOfGC, tick, clockSetBack
    }

    /// A property that must hold, and the states in which it must.
    enum Property {
        /// In every state every record names a present object, even the record of a put that is in progress or has died.
        case recordNamesObject
        /// In every state a record published by a put that has returned names a present object.
        case returnedPutKeepsObject
        /// At the end a returned call is in force: the record of a put or of a `setExpiration` exists, and after a remove no
        /// record exists.
        ///
        /// An overlapping or later put or remove of the same key may change that, but after two puts one of them is in force.
        /// A `setExpiration` may not change it: it keeps contents and restores none. Records that gc planned to delete are
        /// excluded.
        case returnedCallKeepsRecord
        /// After every terminal state, one undisturbed gc leaves only entries with records, and exactly their objects.
        case gcLeavesNothing
        /// In every state that is not terminal, some process or the tick that gc waits for can proceed.
        case someoneGoesOn
    }
}

extension ProtocolModel.Model {
    /// Empty; k1 -> A; A unreferenced; k1 without a record; k1 and k2 -> A.
    ///
    /// All files are freshly written; an immediate tick makes them old.
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

    /// Adds the states that one step, one crash or one tick can lead to, and the moves in the same order.
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

    /// Returns the state after a tick of the clock, or nil if that makes no difference.
    ///
    /// After the stamp it makes a difference only if times equal to the stamp are treated differently, or if the clock had
    /// been set back.
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
