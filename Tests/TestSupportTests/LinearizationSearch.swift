// SPDX-License-Identifier: Apache-2.0

import TestSupport

/// A search for a sequential order that tries all orders: slow, but obviously correct.
struct LinearizationSearch {
    private let operations: [RegisterOperation]
    /// Sets of completed operations, with the resulting value, that no order continues.
    private var deadEnds: Set<State> = []

    private struct State: Hashable {
        var done: UInt32 = 0
        var value: UInt64?
    }

    /// Whether the operations have an order in which each read returns the last written value.
    ///
    /// The order must keep the sequence of operations that do not overlap, and may omit pending writes.
    static func exists(for history: [RegisterOperation]) -> Bool {
        let told = history.filter { $0.kind != .miss && !($0.isPending && $0.isRead) }
        let pending = told.indices.filter { told[$0].isPending }
        return (0..<(1 << pending.count)).contains { choice in
            let left = Set(pending.indices.filter { choice & 1 << $0 != 0 }.map { pending[$0] })
            var search = LinearizationSearch(
                operations: told.indices.filter { !left.contains($0) }.map { told[$0] }
            )
            return search.leads(from: State())
        }
    }

    private init(operations: [RegisterOperation]) {
        self.operations = operations
    }

    private mutating func leads(from state: State) -> Bool {
        let left = operations.indices.filter { state.done & 1 << $0 == 0 }
        if left.isEmpty { return true }
        if deadEnds.contains(state) { return false }
        for next in left {
            let operation = operations[next]
            if left.contains(where: { operations[$0].end < operation.start }) { continue }
            var after = State(done: state.done | 1 << next, value: state.value)
            switch operation.kind {
            case .write(let value): after.value = value
            case .remove: after.value = nil
            case .read(let value): if state.value != value { continue }
            case .miss: break
            }
            if leads(from: after) { return true }
        }
        deadEnds.insert(state)
        return false
    }
}

extension RegisterOperation {
    fileprivate var isRead: Bool {
        if case .read = kind { true } else { false }
    }
}

/// Short random histories with such small times that ties are common.
enum RandomHistory {
    /// Returns a history that callers can observe of operations that take effect in sequence.
    static func linearizable(using generator: inout SeededGenerator) -> [RegisterOperation] {
        var value: UInt64?
        var history: [RegisterOperation] = []
        for step in 1...UInt64.random(in: 2...9, using: &generator) {
            let effect = 2 * step + 8
            let start = effect - .random(in: 0...6, using: &generator)
            let end = effect + .random(in: 0...6, using: &generator)
            var isPending = Int.random(in: 0..<10, using: &generator) == 0
            let kind: RegisterOperation.Kind
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<4:
                kind = .write(step)
                let hasEffect = !isPending || Bool.random(using: &generator)
                if hasEffect { value = step }
            case 4:
                kind = .remove
                let hasEffect = !isPending || Bool.random(using: &generator)
                if hasEffect { value = nil }
            case 5:
                kind = .miss
            default:
                guard let present = value else { continue }
                kind = .read(present)
                isPending = false
            }
            history.append(RegisterOperation(kind, start, end, isPending: isPending))
        }
        return history.shuffled(using: &generator)
    }

    /// Changes some read values, and the times of some operations.
    static func corrupt(_ history: inout [RegisterOperation], using generator: inout SeededGenerator) {
        for index in history.indices where Int.random(in: 0..<3, using: &generator) == 0 {
            if case .read = history[index].kind, Bool.random(using: &generator) {
                history[index].kind = .read(.random(in: 1...9, using: &generator))
            } else {
                history[index].start = .random(in: 0...30, using: &generator)
                history[index].end = history[index].start + .random(in: 0...8, using: &generator)
            }
        }
    }
}
