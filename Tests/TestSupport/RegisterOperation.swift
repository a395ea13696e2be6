// SPDX-License-Identifier: Apache-2.0

/// One operation on a register, as its caller saw it.
///
/// Times are nanoseconds of a clock that all callers share.
public struct RegisterOperation: Sendable, Equatable {
    /// What was done.
    public enum Kind: Sendable, Hashable {
        /// A value was written, which no other operation writes.
        case write(UInt64)
        /// The register was emptied.
        case remove
        /// This value was read.
        case read(UInt64)
        /// No value was read, which a cache may do at any time.
        case miss
    }

    /// What was done.
    public var kind: Kind
    /// Before it took effect.
    public var start: UInt64
    /// After it took effect.
    public var end: UInt64
    /// Whether it was cut off by the death of its process: then it may have taken effect, until `end`, or not.
    public var isPending: Bool
    /// Who did it, for reports.
    public var actor: UInt32

    /// An operation that returned, unless it is said to be pending.
    public init(_ kind: Kind, _ start: UInt64, _ end: UInt64, isPending: Bool = false, actor: UInt32 = 0) {
        self.kind = kind
        self.start = start
        self.end = end
        self.isPending = isPending
        self.actor = actor
    }
}

extension RegisterOperation: CustomStringConvertible {
    /// As in "write 5 [10, 20] by 3".
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
