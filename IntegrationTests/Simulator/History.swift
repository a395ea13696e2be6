// SPDX-License-Identifier: Apache-2.0

/// An operation on one key as its caller saw it, between two steps of the run.
struct HistoryOperation: CustomStringConvertible {
    enum Effect: Equatable {
        /// Stores the value with this number, or 0 for none.
        case write(UInt64)
        /// Returned the value with this number, or 0 for a miss.
        case read(UInt64)
        /// Stored the value with this number, as there was none.
        case add(UInt64)
        /// Did not store a value, as there was one.
        case find
    }

    var process: Int32
    var key: String
    var effect: Effect
    var start: Int
    /// Nil if it did not end, because its process was killed.
    var end: Int?
    /// Whether it may have had no effect: its process was killed, it failed, or its value did not have to be stored.
    var isOptional = false
    /// Whether it is left out of the check: another process computed the value that it returned.
    var isShared = false
    /// When the written value begins to be over, and when it is certainly over, by the wall clock.
    var expires: ClosedRange<Int64>?
    var startTime: Int64 = 0
    var endTime: Int64 = 0

    /// The number of the value that it stores; nil for none.
    var written: UInt64? {
        switch effect {
        case .write(let value): value == 0 ? nil : value
        case .add(let value): value
        case .read, .find: nil
        }
    }

    var description: String {
        let what =
            switch effect {
            case .write(0): "remove"
            case .write(let value): "put #\(value)"
            case .read(0): "miss"
            case .read(let value): "get #\(value)"
            case .add(let value): "put #\(value) if absent"
            case .find: "put if absent: there is a value"
            }
        return
            "[\(process)] \(key): \(what), steps \(start) to \(end.map(String.init) ?? "-")\(isOptional ? ", may have had no effect" : "")"
    }
}

/// Decides whether the operations on one key are linearizable: Wing and Gong, *Testing and Verifying Concurrent
/// Objects* (1993), with the visited states remembered as by Lowe, *Testing for Linearizability* (2017).
///
/// Unlike the check of long histories in TestSupport this one also judges misses.
struct HistorySearch {
    /// Whether values may vanish at any time, by eviction or damage; then a miss is right at any time.
    var mayVanish = false

    private struct Visited: Hashable {
        let done: UInt64
        /// The operation that wrote the present value; nil if there is none.
        let writer: Int?
    }

    /// Returns whether an order of the operations, at most 64, explains all results.
    func isLinearizable(_ operations: [HistoryOperation]) -> Bool {
        precondition(operations.count <= 64, "too many operations on one key")
        let required = operations.indices.reduce(0 as UInt64) {
            operations[$1].isOptional ? $0 : $0 | 1 << $1
        }
        var visited: Set<Visited> = []
        var stack = [Visited(done: 0, writer: nil)]
        while let state = stack.popLast() {
            guard visited.insert(state).inserted else { continue }
            if state.done & required == required { return true }
            // An operation comes next only if no required one that is left ended before it began.
            let soonest =
                operations.indices.lazy
                .filter { state.done & 1 << $0 == 0 && required & 1 << $0 != 0 }
                .map { operations[$0].end ?? .max }.min() ?? .max
            for index in operations.indices where state.done & 1 << index == 0 {
                guard operations[index].start <= soonest else { continue }
                let done = state.done | 1 << index
                switch operations[index].effect {
                case .write: stack.append(Visited(done: done, writer: index))
                case .add:
                    if canRead(0, of: state.writer.map { operations[$0] }, operations[index]) {
                        stack.append(Visited(done: done, writer: index))
                    }
                case .find:
                    if let writer = state.writer.map({ operations[$0] }), let value = writer.written,
                        canRead(value, of: writer, operations[index])
                    {
                        stack.append(Visited(done: done, writer: state.writer))
                    }
                case .read(let value):
                    let writer = state.writer.map { operations[$0] }
                    if canRead(value, of: writer, operations[index]) {
                        stack.append(Visited(done: done, writer: state.writer))
                    }
                }
            }
        }
        return false
    }

    /// Whether a read may return this value, or 0 for none, after that write.
    private func canRead(_ value: UInt64, of writer: HistoryOperation?, _ read: HistoryOperation) -> Bool {
        guard let writer, let written = writer.written else { return value == 0 }
        if value == written {
            // Not once it is certainly over.
            return writer.expires.map { read.startTime <= $0.upperBound } ?? true
        }
        return value == 0 && (mayVanish || writer.expires.map { read.endTime >= $0.lowerBound } ?? false)
    }
}
