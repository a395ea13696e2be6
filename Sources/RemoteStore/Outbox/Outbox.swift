// SPDX-License-Identifier: Apache-2.0

package import CacheStore

/// What the file `outbox` (`OutboxFile`) says: what still has to be done at the servers, in the order in
/// which it came.
///
/// Processes append whole records (``OutboxRecord``) to the file, so it is a journal: later work on a key
/// takes the place of earlier work, and what is done goes. A file that is cut off or damaged anywhere loses
/// the records that were hit: the servers lack those values then, and nobody gets wrong ones. Work that was
/// done, and whose `done` was lost, is done once more, which changes nothing. Who sends a value sends it only
/// if the cache still has that content for the key: what was refused, or never read, may have been later work
/// on it.
///
/// It is bounded: there are never more than so many keys, and so many bytes of contents, unless one value
/// alone is longer. What comes when it is full is refused: the next computation elsewhere makes up for it.
package struct Outbox: Sendable {
    /// What may wait at the same time.
    package struct Limits: Sendable {
        package var records = 65_536
        /// Of contents, which the cache has to keep for so long.
        package var bytes = 1 << 30

        package init() {}
    }

    private let limits: Limits
    /// By the digest of the key, with its place in the order.
    private var waiting: [Digest: (place: Int, record: OutboxRecord)] = [:]
    private var nextPlace = 0
    /// Until when a server may still carry out a request without an answer, by the digest of the key, in milliseconds since
    /// 1970.
    package private(set) var doubts: [Digest: Int64] = [:]
    /// Bytes of the contents that wait.
    package private(set) var waitingBytes = 0
    /// Records that were read, those that count no more included.
    private var recordsRead = 0

    /// Nothing waits.
    package init(_ limits: Limits = Limits()) {
        self.limits = limits
    }

    package var count: Int { waiting.count }

    /// Nothing is taken from the servers that was created before, in milliseconds since 1970.
    package private(set) var barrier: Int64 = 0
    /// Work that there was no room for.
    package private(set) var refusedRecords = 0
    /// Keys that are to be avoided only: nothing is sent for them.
    package private(set) var avoidedCount = 0

    /// Whether anything waits for this key, or there is a doubt about it.
    package func contains(_ entry: Digest) -> Bool { waiting[entry] != nil || doubts[entry] != nil }

    /// Whether this very work still waits.
    package func contains(_ record: OutboxRecord) -> Bool {
        waiting[record.entry]?.record.number == record.number
    }

    /// What waits, the oldest first.
    package var pending: [OutboxRecord] {
        waiting.values.sorted { $0.place < $1.place }.map { $0.record }
    }

    /// Whether the file should be replaced by ``compacted()``: most of it counts no more.
    package var needsCompaction: Bool {
        recordsRead > 1024 && recordsRead > 4 * (waiting.count + doubts.count)
    }

    /// The same without the keys that are to be avoided only.
    package func compactedWithoutAvoided() -> [UInt8] {
        bytes(pending.filter { $0.work != .avoid })
    }

    /// A file that says the same in as few bytes as possible; it must replace the other one while nobody
    /// appends.
    package func compacted() -> [UInt8] {
        bytes(pending)
    }

    private func bytes(_ records: [OutboxRecord]) -> [UInt8] {
        let barriers = barrier == 0 ? [] : [OutboxRecord(.barrier(barrier))]
        let doubts = doubts.map { entry, moment in
            OutboxRecord(number: OutboxRecord.freshNumber(), entry: entry, work: .doubt(until: moment))
        }
        return (barriers + records + doubts).flatMap { $0.encoded() }
    }

    private func hasRoom(for record: OutboxRecord) -> Bool {
        let replaced = waiting[record.entry]?.record
        let countAfter = waiting.count + (replaced == nil ? 1 : 0)
        guard countAfter <= limits.records else { return false }
        let rest = waitingBytes - Self.length(of: replaced)
        let (bytes, overflow) = rest.addingReportingOverflow(Self.length(of: record))
        return rest == 0 || !overflow && bytes <= limits.bytes
    }

    /// Reads the next record of the file.
    package mutating func read(_ record: OutboxRecord) {
        recordsRead += 1
        switch record.work {
        case .barrier(let moment): barrier = max(barrier, moment)
        case .doubt(let moment): doubt(record.entry, until: moment)
        case .certain(let moment): if doubts[record.entry] ?? .max <= moment { doubts[record.entry] = nil }
        case .put, .remove, .avoid, .done: readWork(record)
        case .follows, .carried: break
        }
    }

    private mutating func doubt(_ entry: Digest, until moment: Int64) {
        guard doubts[entry] != nil || doubts.count < limits.records else {
            refusedRecords += 1
            return
        }
        doubts[entry] = max(doubts[entry] ?? 0, moment)
    }

    private mutating func readWork(_ record: OutboxRecord) {
        let earlier = waiting[record.entry]?.record
        if record.work == .done {
            guard earlier?.number == record.number else { return }
            if earlier?.work == .avoid { avoidedCount -= 1 }
            waiting[record.entry] = nil
            waitingBytes -= Self.length(of: earlier)
            return
        }
        // What others wrote may exceed the limits: then the newest is left out.
        guard hasRoom(for: record) else {
            refusedRecords += 1
            return
        }
        if earlier?.work == .avoid { avoidedCount -= 1 }
        if record.work == .avoid { avoidedCount += 1 }
        waitingBytes += Self.length(of: record) - Self.length(of: earlier)
        waiting[record.entry] = (place: nextPlace, record: record)
        nextPlace += 1
    }

    private static func length(of record: OutboxRecord?) -> Int {
        guard case .put(_, let length)? = record?.work else { return 0 }
        return length
    }
}
