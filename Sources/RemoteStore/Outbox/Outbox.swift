// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// The contents of the file `outbox` (`OutboxFile`): the changes that the servers don't have yet, oldest first.
///
/// The file is a journal: processes append whole records (``OutboxRecord``). A later change of a key replaces an earlier
/// one, and a record `done` removes a change that was sent. If the file is truncated or damaged, the damaged records are
/// lost: the servers then lack those values, but no process gets a wrong one. If a record `done` is lost, the change is
/// sent again, which is harmless. The sender sends the present value of the key in the cache, because a later record may
/// be lost.
///
/// The number of keys and the total length of their contents are limited; a single value may exceed the limit of the
/// length. Further changes are refused: other machines then have to compute those values.
struct Outbox: Sendable {
    /// The limits of pending changes.
    struct Limits: Sendable {
        var records = 65_536
        /// The maximum total length in bytes of the contents, which the cache must keep until they are sent.
        var bytes = 1 << 30
    }

    private let limits: Limits
    /// The pending records, by the digest of the key, with their places in the order.
    private var waiting: [Digest: (place: Int, record: OutboxRecord)] = [:]
    private var nextPlace = 0
    /// The time, in milliseconds since 1970, until which a server may still carry out an unanswered request, by the
    /// digest of the key.
    private(set) var doubts: [Digest: Int64] = [:]
    /// The total length in bytes of the pending contents.
    private(set) var waitingBytes = 0
    /// The number of records read, including superseded ones.
    private var recordsRead = 0

    /// Creates an empty outbox.
    init(_ limits: Limits = Limits()) {
        self.limits = limits
    }

    var count: Int { waiting.count }

    /// The number of records that were refused because of the limits.
    private(set) var refusedRecords = 0

    /// Returns whether a change of this key is pending.
    func contains(_ entry: Digest) -> Bool { waiting[entry] != nil }

    /// Returns whether exactly this record is still pending.
    func contains(_ record: OutboxRecord) -> Bool {
        waiting[record.entry]?.record.number == record.number
    }

    /// The pending records, oldest first.
    var pending: [OutboxRecord] {
        waiting.values.sorted { $0.place < $1.place }.map { $0.record }
    }

    /// Whether the file should be replaced by ``compacted()``.
    ///
    /// Either most of its records are superseded, or the file is half full and would become shorter by an eighth.
    var needsCompaction: Bool {
        let needed = waiting.count + doubts.count
        if recordsRead > 1024, recordsRead > 4 * needed { return true }
        return recordsRead > Self.manyRecords && recordsRead > needed + needed / 8
    }

    /// The number of records in half a file.
    private static let manyRecords = Int(OutboxFile.longest) / OutboxRecord.size / 2

    /// Returns the shortest file with the same contents.
    func compacted() -> [UInt8] {
        let doubts = doubts.map { entry, moment in
            OutboxRecord(number: OutboxRecord.freshNumber(), entry: entry, work: .doubt(until: moment))
        }
        return (pending + doubts).flatMap { $0.encoded() }
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
    mutating func read(_ record: OutboxRecord) {
        recordsRead += 1
        switch record.work {
        case .doubt(let moment): doubt(record.entry, until: moment)
        case .certain(let moment): if doubts[record.entry] ?? .max <= moment { doubts[record.entry] = nil }
        case .put, .remove, .done: readWork(record)
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
            waiting[record.entry] = nil
            waitingBytes -= Self.length(of: earlier)
            return
        }
        // A process may append an earlier change, such as the entry that it has read before the later change.
        if let earlier, earlier.number > record.number { return }
        // A file that exceeds the limits is possible; records beyond them are ignored.
        guard hasRoom(for: record) else {
            refusedRecords += 1
            return
        }
        waitingBytes += Self.length(of: record) - Self.length(of: earlier)
        waiting[record.entry] = (place: nextPlace, record: record)
        nextPlace += 1
    }

    private static func length(of record: OutboxRecord?) -> Int {
        guard case .put(_, let length)? = record?.work else { return 0 }
        return length
    }
}
