// SPDX-License-Identifier: Apache-2.0

/// All ways to explain the results of the calls on one key so far by an order in which the calls took effect.
///
/// A call takes effect at one moment between its begin and its end; that of a killed process at any later moment, or never.
/// If no history is left, the results are not linearizable (Herlihy and Wing, 1990).
struct Histories: Hashable {
    struct History: Hashable {
        /// The present value; 0 for none.
        var value: UInt8
        /// The processes whose pending calls have taken effect.
        var done: UInt8 = 0
        /// The values that the key has had since the get of each process began, as 16 bits per process: values are less
        /// than 16.
        var seen: UInt64 = 0

        /// Returns the history in which the value changes now.
        func changed(to value: UInt8) -> History {
            precondition(value < 16, "too large for the bits of a process")
            var next = self
            next.value = value
            for reader in 0..<UInt64(4) where seen >> (16 * reader) & 0xffff != 0 {
                next.seen |= 1 << (UInt64(value) + 16 * reader)
            }
            return next
        }
    }

    /// What a pending call does: it puts a value, or clears the key with 0.
    private var pending: [UInt8?]
    private(set) var all: Set<History>

    init(_ value: UInt8, processes: Int) {
        pending = Array(repeating: nil, count: processes)
        all = [History(value: value)]
    }

    /// Whether the results can't be explained.
    var isBroken: Bool { all.isEmpty }

    /// Begins a call of the process that sets the value; 0 clears it.
    mutating func beginWrite(_ value: UInt8, by process: Int) {
        pending[process] = value
        addEffects()
    }

    /// Begins a get of the process.
    mutating func beginGet(by process: Int) {
        all = Set(
            all.map { history in
                var history = history
                history.seen |= 1 << (UInt64(history.value) + 16 * UInt64(process))
                return history
            }
        )
        addEffects()
    }

    /// Ends a call that writes; if it must have taken effect, the other histories are impossible.
    mutating func endWrite(by process: Int, mustBeDone: Bool = true) {
        let mask: UInt8 = 1 << process
        var left: Set<History> = []
        for var history in all where history.done & mask != 0 || !mustBeDone {
            history.done &= ~mask
            left.insert(history)
        }
        all = left
        pending[process] = nil
    }

    /// Replaces the value now; the histories with another value are impossible.
    mutating func exchange(_ old: UInt8, by new: UInt8) {
        all = Set(all.filter { $0.value == old }.map { $0.changed(to: new) })
        addEffects()
    }

    /// Ends a get; the histories in which the key did not have this value meanwhile are impossible.
    mutating func endGet(_ value: UInt8, by process: Int) {
        var left: Set<History> = []
        for var history in all where history.seen >> (16 * UInt64(process)) & 1 << UInt64(value) != 0 {
            history.seen &= ~(0xffff << (16 * UInt64(process)))
            left.insert(history)
        }
        all = left
    }

    /// Ends a get that returns nothing, not even a miss.
    mutating func cancelGet(by process: Int) {
        all = Set(
            all.map { history in
                var history = history
                history.seen &= ~(0xffff << (16 * UInt64(process)))
                return history
            }
        )
    }

    /// Adds the histories in which pending calls take effect now.
    private mutating func addEffects() {
        var todo = Array(all)
        while let history = todo.popLast() {
            for (process, value) in pending.enumerated() {
                guard let value, history.done & 1 << process == 0 else { continue }
                var next = history.changed(to: value)
                next.done |= 1 << process
                if all.insert(next).inserted { todo.append(next) }
            }
        }
    }
}
