// SPDX-License-Identifier: Apache-2.0

/// One operation on a register, as its caller saw it.
///
/// Times are nanoseconds of a clock that all callers share.
public struct RegisterOperation: Sendable, Equatable {
    /// The kind of an operation, with its value.
    public enum Kind: Sendable, Hashable {
        /// Writes this value, which no other operation writes.
        case write(UInt64)
        /// Empties the register.
        case remove
        /// Reads this value.
        case read(UInt64)
        /// Reads no value, which a cache may do at any time.
        case miss
    }

    /// The kind of the operation.
    public var kind: Kind
    /// A time before the operation took effect.
    public var start: UInt64
    /// A time after the operation took effect.
    public var end: UInt64
    /// Whether the process died during the operation, so that it may or may not have taken effect before `end`.
    public var isPending: Bool
    /// The number of the caller, for reports.
    public var actor: UInt32

    /// Creates an operation, which has returned unless it is pending.
    public init(_ kind: Kind, _ start: UInt64, _ end: UInt64, isPending: Bool = false, actor: UInt32 = 0) {
        self.kind = kind
        self.start = start
        self.end = end
        self.isPending = isPending
        self.actor = actor
    }
}

extension RegisterOperation: CustomStringConvertible {
    /// A text like "write 5 [10, 20] by 3".
    public var description: String {
        let what =
            switch kind {
            case .write(let value): "write \(value)"
            case .remove: "remove"
            case .read(let value): "read \(value)"
            case .miss: "miss"
            }
        return "\(what) [\(start), \(end)\(isPending ? ", pending" : "")] by \(actor)"
    }
}
