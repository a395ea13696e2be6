// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation

@testable import DiskCache

/// Every interleaving of calls of `value(forKey:)` in one process and others with removals of the key, step by step,
/// on the real ``FlightTable``.
///
/// What is checked: each call returns a value that the register held, or was given, at some moment of the call; all
/// calls end; and where nothing interferes one of them computes.
struct FlightModel {
    /// A step that is left out, or done too late.
    enum Mistake: CaseIterable {
        /// The flight is closed once its leader has looked.
        case closesAfterLooking
        /// The flight is closed once its leader has stored.
        case closesAfterStoring
    }

    /// Where a call is.
    enum Step: Hashable {
        case begin, enter, wait
        case tryLock, look, compute, store, hasStored
        case hasLooked(Int?), unlock(Int?), handOut(Int?)
        case returned(Int?)
    }

    struct Caller: Hashable {
        var process: Int
        var step = Step.begin
        /// The values that the register has held since the call began; value *n* is what caller *n* computes.
        var seen: Set<Int> = []
        var inbox: Step?

        var isUnderWay: Bool {
            switch step {
            case .begin, .returned: false
            default: true
            }
        }
    }

    struct State: Hashable {
        var callers: [Caller]
        /// Who waits in the table is known by his place among the callers.
        var tables: [FlightTable<Int>]
        var register: Int?
        var lockHolder: Int?
        var removals: Int
        var computations = 0
        var isDisturbed = false

        mutating func hold(_ value: Int?) {
            register = value
            if let value { offer(value) }
        }

        /// Whoever has asked by now may be given this value.
        mutating func offer(_ value: Int) {
            for index in callers.indices where callers[index].isUnderWay { callers[index].seen.insert(value) }
        }
    }

    private static let key = FlightKey(digest: Digest(ofKey: "key"), form: ObjectIdentifier(Data.self))

    let mistake: Mistake?
    /// Whether computations may fail, and values may be computed that can't be stored.
    let fails: Bool
    private(set) var count = 0
    private(set) var faults: Set<String> = []
    private var known: Set<State> = []

    /// Explores all that callers in these processes can do, beside so many removals.
    static func explore(_ processes: [Int], removals: Int, fails: Bool, _ mistake: Mistake? = nil)
        -> FlightModel
    {
        var model = FlightModel(mistake: mistake, fails: fails)
        let tables = [FlightTable<Int>](repeating: FlightTable(), count: (processes.max() ?? 0) + 1)
        let callers = processes.map { Caller(process: $0) }
        model.walk(from: State(callers: callers, tables: tables, removals: removals))
        return model
    }

    private init(mistake: Mistake?, fails: Bool) {
        self.mistake = mistake
        self.fails = fails
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
        for caller in state.callers {
            guard case .returned = caller.step else {
                faults.insert("a call does not end")
                return
            }
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

    /// What the next step of one caller may lead to; nothing where it waits or has returned.
    private mutating func advance(_ index: Int, _ before: State) -> [State] {
        var state = before
        let process = state.callers[index].process
        switch state.callers[index].step {
        case .begin:
            state.callers[index].step = .enter
            state.hold(state.register)
            if let value = state.register { finish(index, value, &state) }
        case .enter:
            let entry = state.tables[process].enter(Self.key, index)
            state.callers[index].step = entry == .lead ? .tryLock : .wait
        case .wait:
            guard let told = state.callers[index].inbox else { return [] }
            state.callers[index].inbox = nil
            if case .returned(let value?) = told {
                finish(index, value, &state)
            } else {
                state.callers[index].step = told
            }
        case .tryLock:
            if state.lockHolder != nil { return [] }
            state.lockHolder = index
            if mistake != .closesAfterLooking { state.tables[process].close(Self.key) }
            state.callers[index].step = .look
        case .look:
            let found = state.register
            state.callers[index].step = found.map { .unlock($0) } ?? .compute
            if mistake == .closesAfterLooking { state.callers[index].step = .hasLooked(found) }
        case .hasLooked(let found):
            state.tables[process].close(Self.key)
            state.callers[index].step = found.map { .unlock($0) } ?? .compute
        case .compute:
            state.computations += 1
            if mistake != .closesAfterStoring { state.tables[process].close(Self.key) }
            state.callers[index].step = .store
            guard fails else { break }
            var failed = before
            failed.computations += 1
            failed.isDisturbed = true
            failed.callers[index].step = .unlock(nil)
            return [state, failed]
        case .store:
            state.callers[index].step = mistake == .closesAfterStoring ? .hasStored : .unlock(index)
            var unstored = state
            state.hold(index)
            guard fails else { break }
            unstored.isDisturbed = true
            unstored.offer(index)
            return [state, unstored]
        case .hasStored:
            state.tables[process].close(Self.key)
            state.callers[index].step = .unlock(index)
        case .unlock(let value):
            state.lockHolder = nil
            state.callers[index].step = .handOut(value)
        case .handOut(let value):
            if let value {
                for seat in state.tables[process].takeOnTime(Self.key) {
                    state.callers[seat].inbox = .returned(value)
                }
            }
            if let next = state.tables[process].handOver(Self.key) { state.callers[next].inbox = .tryLock }
            if let value { finish(index, value, &state) } else { state.callers[index].step = .returned(nil) }
        case .returned: return []
        }
        return [state]
    }

    private mutating func finish(_ index: Int, _ value: Int, _ state: inout State) {
        if !state.callers[index].seen.contains(value) {
            faults.insert("a call returns what was gone before it began")
        }
        state.callers[index].step = .returned(value)
        // What it has seen makes no difference any more.
        state.callers[index].seen = []
    }
}
