// SPDX-License-Identifier: Apache-2.0

/// A reason why no sequential history explains the operations on one register.
public struct LinearizabilityViolation: Sendable, CustomStringConvertible {
    /// The kinds of violations.
    public enum Kind: String, Sendable {
        /// An operation read a value that no operation wrote.
        case neverWritten = "a value that nobody wrote was read"
        /// A read of a value ended before the write of that value started.
        case readBeforeWrite = "a read ended before the write of its value began"
        /// Two operations wrote the same value, which the check does not support.
        case writtenTwice = "a value was written twice"
        /// Each of two values was present both before and after the other.
        case interleaved = "two values each came before the other"
        /// A value was read after it had been overwritten or removed.
        case overwritten = "a value was read after it had been overwritten"
    }

    /// The kind of the violation.
    public let kind: Kind
    /// The operations that contradict each other.
    public let operations: [RegisterOperation]

    /// The kind, followed by one line per operation.
    public var description: String {
        ([kind.rawValue] + operations.map { "  \($0)" }).joined(separator: "\n")
    }
}

/// Decides whether a history of one register is linearizable, except for misses, which are ignored.
///
/// The check is exact for histories in which no value is written twice. It uses the zones of Gibbons and Korach,
/// *Testing Shared Memories* (SIAM J. Comput. 26, 1997). The operations of one value, its write and its reads, take
/// effect next to each other. If the first of them to end precedes the last one to start, the value was present for
/// that whole time (a forward zone); else all of them could have taken effect at any one moment between these two
/// (a backward zone). A history is linearizable if no two forward zones overlap and no backward zone lies within a
/// forward one. An operation precedes another if it ends strictly before the other starts.
///
/// A remove is a write of a value that is never read. A pending write counts if its value was read.
///
/// - Complexity: O(*n* log *n*).
public struct Linearizability {
    /// The operations of one value.
    private struct Cluster {
        var write: RegisterOperation?
        /// The operation that ended first; it may be the write.
        var firstEnded: RegisterOperation
        /// The operation that started last; it may be the write.
        var lastStarted: RegisterOperation
        /// The read that ended first.
        var read: RegisterOperation?

        init(_ operation: RegisterOperation) {
            firstEnded = operation
            lastStarted = operation
        }

        mutating func add(_ operation: RegisterOperation) {
            if operation.end < firstEnded.end { firstEnded = operation }
            if operation.start > lastStarted.start { lastStarted = operation }
        }

        var isForward: Bool { firstEnded.end < lastStarted.start }

        /// The operations that delimit the zone, and the write.
        var evidence: [RegisterOperation] {
            var operations = write.map { [$0] } ?? []
            for other in [firstEnded, lastStarted] where !operations.contains(other) {
                operations.append(other)
            }
            return operations
        }
    }

    private var clusters: [UInt64: Cluster] = [:]
    private var removes: [Cluster] = []
    private var violations: [LinearizabilityViolation] = []

    /// Returns all violations in a history of one register; empty if the history is linearizable.
    ///
    /// The operations may be in any order.
    public static func violations(of history: [RegisterOperation]) -> [LinearizabilityViolation] {
        var check = Linearizability()
        for operation in history { check.add(operation) }
        check.judgeClusters()
        check.judgeZones()
        return check.violations
    }

    private mutating func add(_ operation: RegisterOperation) {
        switch operation.kind {
        case .miss: return
        case .remove:
            if !operation.isPending { removes.append(Cluster(operation)) }
        case .write(let value):
            var cluster = clusters[value] ?? Cluster(operation)
            if let other = cluster.write { report(.writtenTwice, [other, operation]) }
            cluster.add(operation)
            cluster.write = operation
            clusters[value] = cluster
        case .read(let value):
            // A pending read has not returned a value to its caller.
            if operation.isPending { return }
            var cluster = clusters[value] ?? Cluster(operation)
            cluster.add(operation)
            if operation.end < cluster.read?.end ?? .max { cluster.read = operation }
            clusters[value] = cluster
        }
    }

    private mutating func report(_ kind: LinearizabilityViolation.Kind, _ operations: [RegisterOperation]) {
        violations.append(LinearizabilityViolation(kind: kind, operations: operations))
    }

    private mutating func judgeClusters() {
        for cluster in clusters.values {
            guard let read = cluster.read else { continue }
            guard let write = cluster.write else {
                report(.neverWritten, [read])
                continue
            }
            if read.end < write.start { report(.readBeforeWrite, [write, read]) }
        }
    }

    private mutating func judgeZones() {
        let taking = clusters.values.filter { $0.read != nil || $0.write?.isPending == false } + removes
        let forward = taking.filter(\.isForward).sorted { $0.firstEnded.end < $1.firstEnded.end }
        // The forward zone so far that ends last: if a zone overlaps any earlier zone, it also overlaps this one.
        var furthest: [Cluster] = []
        for zone in forward {
            guard let last = furthest.last else {
                furthest.append(zone)
                continue
            }
            let overlaps = zone.firstEnded.end < last.lastStarted.start
            if overlaps { report(.interleaved, last.evidence + zone.evidence) }
            let isFurther = zone.lastStarted.start > last.lastStarted.start
            furthest.append(isFurther ? zone : last)
        }
        for zone in taking where !zone.isForward {
            let count = forward.partitionPoint { $0.firstEnded.end < zone.lastStarted.start }
            guard count > 0 else { continue }
            let around = furthest[count - 1]
            if zone.firstEnded.end < around.lastStarted.start {
                report(.overwritten, around.evidence + zone.evidence)
            }
        }
    }
}

extension Array {
    /// Returns the number of leading elements for which `belongs` holds.
    ///
    /// The array must be partitioned: all elements for which `belongs` holds come first.
    fileprivate func partitionPoint(where belongs: (Element) -> Bool) -> Int {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if belongs(self[middle]) { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
