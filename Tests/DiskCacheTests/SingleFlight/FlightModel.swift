// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation

@testable import DiskCache

/// Explores every interleaving of `value(forKey:)` calls in several processes with removals of the key, step by step, on the real
/// ``FlightStateMachine`` and ``InFlightTable``.
///
/// It checks that each call returns a value that the register held or was offered at some moment of the call, that all calls end,
/// and that exactly one call computes if nothing interferes.
struct FlightModel {
    /// A step that is deliberately done too late.
    enum Mistake: CaseIterable {
        /// The flight is closed after its leader has looked again.
        case closesAfterLooking
        /// The flight is closed after its leader has stored its value.
        case closesAfterStoring
    }

    /// The events that may happen besides removals.
    struct Disturbances: OptionSet {
        let rawValue: Int

        /// Computations may fail, and computed values may not be storable.
        static let failures = Disturbances(rawValue: 1)
        /// A waiter may time out once.
        static let impatience = Disturbances(rawValue: 2)
        /// A value that a leader hands over may be of no use to the waiter.
        static let refusals = Disturbances(rawValue: 4)
    }

    struct Caller: Hashable {
        var process: Int
        var course = FlightStateMachine(.value)
        var hasBegun = false
        /// The values that the register has held since the call began; value *n* is what caller *n* computes.
        var seen: Set<Int> = []
        /// The value to return or to hand over.
        var value: Int?
        /// The caller's number in the table.
        var seat: UInt64 = 0
        /// The outcome with which the seat was settled.
        var inbox: Inbox?
        /// Whether the caller waits for the lock holder.
        var isBehind = false
        /// How the lock holder has released the lock.
        var released: FlightLock.Attempt?
        /// The event whose late step, due to a mistake, is still pending.
        var late: FlightStateMachine.Event?

        var isUnderWay: Bool { hasBegun && course.action != .finish }
    }

    enum Inbox: Hashable {
        case value(Int)
        case lead
    }

    struct State: Hashable {
        var callers: [Caller]
        /// The tables of the processes; a seat is the index of a caller.
        var tables: [InFlightTable<Int>]
        var register: Int?
        var lockHolder: Int?
        var removals: Int
        var computations = 0
        var isDisturbed = false

        mutating func hold(_ value: Int?) {
            register = value
            if let value { offer(value) }
        }

        /// Permits every call in progress to return this value.
        mutating func offer(_ value: Int) {
            for index in callers.indices where callers[index].isUnderWay { callers[index].seen.insert(value) }
        }
    }

    private static let key = FlightKey(digest: Digest(ofKey: "key"), form: MemoryEntry.bytes)

    let mistake: Mistake?
    let disturbances: Disturbances
    private(set) var count = 0
    private(set) var faults: Set<String> = []
    private var known: Set<State> = []

    /// Explores all interleavings of callers in these processes with the given number of removals.
    static func explore(
        _ processes: [Int],
        removals: Int,
        _ disturbances: Disturbances = [],
        _ mistake: Mistake? = nil
    ) -> FlightModel {
        var model = FlightModel(mistake: mistake, disturbances: disturbances)
        let tables = [InFlightTable<Int>](repeating: InFlightTable(), count: (processes.max() ?? 0) + 1)
        let callers = processes.map { Caller(process: $0) }
        model.walk(from: State(callers: callers, tables: tables, removals: removals))
        return model
    }

    private init(mistake: Mistake?, disturbances: Disturbances) {
        self.mistake = mistake
        self.disturbances = disturbances
    }

    private mutating func walk(from start: State) {
        var open = [start]
        known.insert(start)
        while let state = open.popLast() {
            count += 1
            let next = successors(of: state)
            if next.isEmpty { judgeEnd(state) }
            for state in next where known.insert(state).inserted { open.append(state) }
        }
    }

    private mutating func judgeEnd(_ state: State) {
        if state.callers.contains(where: { $0.course.action != .finish }) {
            faults.insert("a call does not end")
            return
        }
        if !state.isDisturbed, state.computations != 1 { faults.insert("more than one computes") }
        if state.tables.contains(where: { $0.count > 0 }) { faults.insert("a flight is left") }
    }

    private mutating func successors(of state: State) -> [State] {
        var states: [State] = []
        if state.removals > 0 {
            var after = state
            after.removals -= 1
            after.isDisturbed = true
            after.hold(nil)
            states.append(after)
        }
        for index in state.callers.indices { states += advance(index, state) }
        return states
    }

    /// Returns the states that the next step of one caller may lead to; none if it waits or has returned.
    private mutating func advance(_ index: Int, _ before: State) -> [State] {
        var state = before
        let caller = state.callers[index]
        if let late = caller.late {
            state.callers[index].late = nil
            close(index, &state)
            proceed(index, late, &state)
            return [state]
        }
        switch caller.course.action {
        case .look:
            state.callers[index].hasBegun = true
            state.hold(state.register)
            proceed(index, found(index, &state), &state)
        case .enter: proceed(index, enter(index, &state), &state)
        case .wait: return waited(index, state)
        case .attempt: proceed(index, .attempted(attempt(index, &state)), &state)
        case .pause: return paused(index, state)
        case .lookAgain:
            let event = found(index, &state)
            if mistake == .closesAfterLooking {
                state.callers[index].late = event
            } else {
                proceed(index, event, &state)
            }
        case .compute: return computed(index, state)
        case .store: return stored(index, state)
        case .release(let isStored):
            state.lockHolder = nil
            for other in state.callers.indices where state.callers[other].isBehind {
                state.callers[other].released = .ended(isUnstored: !isStored)
                state.callers[other].isBehind = false
            }
            proceed(index, .done, &state)
        case .handOver:
            handOver(index, &state)
            proceed(index, .done, &state)
        case .fallBack: proceed(index, .miss, &state)
        case .refresh, .finish: return []
        }
        return [state]
    }

    private func place(_ index: Int, _ state: State) -> FlightKey {
        var place = Self.key
        place.impatience = state.callers[index].course.impatience
        return place
    }

    private func close(_ index: Int, _ state: inout State) {
        state.tables[state.callers[index].process].close(place(index, state))
    }

    private mutating func proceed(_ index: Int, _ event: FlightStateMachine.Event, _ state: inout State) {
        state.callers[index].course.proceed(event)
        switch state.callers[index].course.action {
        case .lookAgain where mistake != .closesAfterLooking: close(index, &state)
        case .store where mistake != .closesAfterStoring && state.callers[index].course.isLeading:
            close(index, &state)
        case .finish:
            if let value = state.callers[index].value, !state.callers[index].seen.contains(value) {
                faults.insert("a call returns what was gone before it began")
            }
            // The values that it has seen no longer matter.
            state.callers[index].seen = []
        default: break
        }
    }

    private func found(_ index: Int, _ state: inout State) -> FlightStateMachine.Event {
        state.callers[index].value = state.register
        return state.register == nil ? .miss : .hit
    }

    private func enter(_ index: Int, _ state: inout State) -> FlightStateMachine.Event {
        let process = state.callers[index].process
        guard let number = state.tables[process].enter(place(index, state), index) else {
            return .leads
        }
        state.callers[index].seat = number
        return .joined
    }

    private mutating func waited(_ index: Int, _ before: State) -> [State] {
        var state = before
        switch state.callers[index].inbox {
        case .value(let value):
            state.callers[index].inbox = nil
            var refused = state
            state.callers[index].value = value
            proceed(index, .hit, &state)
            guard disturbances.contains(.refusals) else { return [state] }
            refused.isDisturbed = true
            proceed(index, .miss, &refused)
            return [state, refused]
        case .lead:
            state.callers[index].inbox = nil
            proceed(index, .leads, &state)
        case nil:
            guard mayTimeOut(index, state) else { return [] }
            let caller = state.callers[index]
            state.tables[caller.process].leave(place(index, state), caller.seat)
            timeOut(index, &state)
        }
        return [state]
    }

    private func attempt(_ index: Int, _ state: inout State) -> FlightLock.Attempt {
        if let released = state.callers[index].released {
            state.callers[index].released = nil
            return released
        }
        guard state.lockHolder == nil else {
            state.callers[index].isBehind = true
            return .held
        }
        state.lockHolder = index
        return .acquired
    }

    private mutating func paused(_ index: Int, _ before: State) -> [State] {
        var (state, late) = (before, before)
        proceed(index, .done, &state)
        // Until the lock is released, another attempt changes nothing.
        var states = state.callers[index].isBehind ? [] : [state]
        if mayTimeOut(index, late) {
            late.callers[index].isBehind = false
            late.callers[index].released = nil
            timeOut(index, &late)
            states.append(late)
        }
        return states
    }

    private func mayTimeOut(_ index: Int, _ state: State) -> Bool {
        disturbances.contains(.impatience) && state.callers[index].course.impatience == 0
    }

    private mutating func timeOut(_ index: Int, _ state: inout State) {
        state.isDisturbed = true
        proceed(index, .timedOut, &state)
    }

    private mutating func computed(_ index: Int, _ before: State) -> [State] {
        var state = before
        state.computations += 1
        var failed = state
        state.callers[index].value = index
        proceed(index, .computed, &state)
        guard disturbances.contains(.failures) else { return [state] }
        failed.isDisturbed = true
        proceed(index, .failed, &failed)
        return [state, failed]
    }

    private mutating func stored(_ index: Int, _ before: State) -> [State] {
        var (state, unstored) = (before, before)
        state.hold(index)
        if mistake == .closesAfterStoring {
            state.callers[index].late = .stored
        } else {
            proceed(index, .stored, &state)
        }
        guard disturbances.contains(.failures) else { return [state] }
        unstored.isDisturbed = true
        unstored.offer(index)
        proceed(index, .unstored, &unstored)
        return [state, unstored]
    }

    private func handOver(_ index: Int, _ state: inout State) {
        let (process, place) = (state.callers[index].process, place(index, state))
        if let value = state.callers[index].value {
            for seat in state.tables[process].takeOnTime(place) { state.callers[seat].inbox = .value(value) }
        }
        if let next = state.tables[process].handOver(place) { state.callers[next].inbox = .lead }
    }
}
