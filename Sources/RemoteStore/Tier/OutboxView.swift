// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The outbox of a directory as this process has read it.
///
/// Each read continues after the last one.
final class OutboxView: Sendable {
    private struct State {
        var outbox = Outbox()
        /// The file at the last read; nil if it was missing.
        var mark: OutboxFile.Mark?
        /// Its first record, which identifies it, or the part that was written.
        var beginning: [UInt8] = []
        /// The offset up to which it was read.
        var offset: Int64 = 0
        /// The part of the older file that must be read until this file contains all of it.
        var predecessor: (number: UInt64, offset: Int64)?
        /// The number of records without room that ``follow(_:)`` has returned so far.
        var refused = 0
    }

    private let state = Locked(State())
    /// How often to read again if the file is replaced meanwhile.
    private static let mostLooks = 8

    /// Reads the new records.
    ///
    /// One system call if there are none, else six.
    ///
    /// - Returns: the number of records for which there was no room since the last call.
    /// - Throws: also ``Errno/timedOut`` if the file is replaced again and again: the pending records are unknown then.
    @discardableResult
    func follow(_ file: OutboxFile) throws(Errno) -> Int {
        for _ in 0..<Self.mostLooks {
            let mark = try file.mark()
            let isRead = try state.withLock { (state) throws(Errno) in try Self.follow(file, mark, &state) }
            if isRead { return takeRefused() }
        }
        throw .timedOut
    }

    /// Reads the new records; returns false if the file was replaced meanwhile.
    private static func follow(
        _ file: OutboxFile,
        _ mark: OutboxFile.Mark?,
        _ state: inout State
    ) throws(Errno) -> Bool {
        guard let mark else {
            state = State()
            return true
        }
        if mark == state.mark, state.predecessor == nil { return true }
        guard let part = try file.read(from: state.offset), part.beginning.starts(with: state.beginning),
            part.mark.size >= state.offset
        else {
            state = State()
            return false
        }
        (state.mark, state.beginning) = (part.mark, part.beginning)
        let (records, count) = OutboxRecord.all(in: part.bytes)
        state.offset += Int64(count)
        for record in records {
            switch record.work {
            case .follows(let offset): state.predecessor = (record.number, offset)
            case .carried: if record.number == state.predecessor?.number { state.predecessor = nil }
            case .put, .remove, .avoid, .done, .barrier, .doubt, .certain: state.outbox.read(record)
            }
        }
        guard let predecessor = state.predecessor else { return true }
        // If it is missing, this file has all of it by now.
        guard let late = try file.readPredecessor(from: predecessor.offset) else { return false }
        for record in OutboxRecord.net(late) { state.outbox.read(record) }
        // If the file has changed, it may have been the predecessor of another file.
        return try file.mark() == part.mark
    }

    private func takeRefused() -> Int {
        state.withLock { state in
            let refused = state.outbox.refusedRecords - state.refused
            state.refused = state.outbox.refusedRecords
            return refused
        }
    }

    /// Whether records of the older file must still be carried over.
    var isToBeCarriedOver: Bool { state.withLock { $0.predecessor != nil } }

    /// Returns whether a change of this key is pending, or a request for it may still be carried out.
    func contains(_ key: Digest) -> Bool { state.withLock { $0.outbox.contains(key) } }

    /// Returns whether this very record is still pending.
    func contains(_ record: OutboxRecord) -> Bool { state.withLock { $0.outbox.contains(record) } }

    /// Values that were created before this time are not fetched from the servers.
    var barrier: Timestamp { Timestamp(milliseconds: state.withLock { $0.outbox.barrier }) }

    var count: Int { state.withLock { $0.outbox.count } }

    /// Whether there is a change to send.
    var hasWork: Bool { state.withLock { $0.outbox.count > $0.outbox.avoidedCount } }

    /// Returns the doubts that have ended, by the digest of the key.
    ///
    /// - Parameter longest: the longest duration of a doubt: one that ends later was recorded before the clock was set back.
    func doubts(endedBy now: Timestamp, longest: Duration) -> [Digest: Int64] {
        let (first, last) = (now.milliseconds, (now + longest).milliseconds)
        return state.withLock { state in
            state.outbox.doubts.filter { $0.value <= first || $0.value > last }
        }
    }

    /// The number of keys that are only avoided.
    var avoidedCount: Int { state.withLock { $0.outbox.avoidedCount } }

    /// Whether most records of the file are superseded.
    var needsCompaction: Bool { state.withLock { $0.outbox.needsCompaction } }

    /// The pending records, the oldest first.
    var pending: [OutboxRecord] { state.withLock { $0.outbox.pending } }

    /// Returns the records of a shorter file, and the offset up to which this one was read; nil if it needs no replacement.
    func replacement(withoutAvoided: Bool) -> (records: [UInt8], offset: Int64)? {
        state.withLock { state -> (records: [UInt8], offset: Int64)? in
            if withoutAvoided {
                return (records: state.outbox.compactedWithoutAvoided(), offset: state.offset)
            }
            guard state.outbox.needsCompaction else { return nil }
            return (records: state.outbox.compacted(), offset: state.offset)
        }
    }
}
