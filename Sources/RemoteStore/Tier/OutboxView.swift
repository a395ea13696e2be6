// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The outbox of a directory, as far as this process has read it.
///
/// Each read continues where the last one ended.
final class OutboxView: Sendable {
    private struct State {
        var outbox = Outbox()
        /// The file at the last read; nil if it was missing.
        var mark: OutboxFile.Mark?
        /// The first record of the file, which identifies it; or the part of that record that was already written.
        var beginning: [UInt8] = []
        /// The offset up to which the file was read.
        var offset: Int64 = 0
        /// The older file, which this one replaces, and the offset from which it must be read until all its records are
        /// carried over; nil if they are.
        var predecessor: (number: UInt64, offset: Int64)?
        /// The number of refused records that ``follow(_:)`` has reported so far.
        var refused = 0
    }

    private let state = Locked(State())
    /// The maximum number of attempts to read a file that is being replaced.
    private static let mostLooks = 8

    /// Reads the new records.
    ///
    /// Takes one system call if there are none, else six.
    ///
    /// - Returns: The number of records that were refused for lack of room since the last call.
    /// - Throws: ``Errno``; ``Errno/timedOut`` if the file is replaced again and again, so that the pending records are
    ///   unknown.
    @discardableResult
    func follow(_ file: OutboxFile) throws(Errno) -> Int {
        for _ in 0..<Self.mostLooks {
            let mark = try file.mark()
            let isRead = try state.withLock { (state) throws(Errno) in try Self.follow(file, mark, &state) }
            if isRead { return takeRefused() }
        }
        throw .timedOut
    }

    /// Reads the new records; returns false if the file was replaced during the read.
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
            case .put, .remove, .done, .doubt, .certain: state.outbox.read(record)
            }
        }
        guard let predecessor = state.predecessor else { return true }
        // If the older file is missing, its records were carried over, and this file must be read again.
        guard let late = try file.readPredecessor(from: predecessor.offset) else { return false }
        for record in OutboxRecord.net(late) { state.outbox.read(record) }
        // If the present file was replaced during the read, the older file may have been that of another one.
        return try file.mark() == part.mark
    }

    private func takeRefused() -> Int {
        state.withLock { state in
            let refused = state.outbox.refusedRecords - state.refused
            state.refused = state.outbox.refusedRecords
            return refused
        }
    }

    /// Whether records of the older file must still be carried over to the present one.
    var isToBeCarriedOver: Bool { state.withLock { $0.predecessor != nil } }

    /// Returns whether a change of this key is pending.
    func contains(_ key: Digest) -> Bool { state.withLock { $0.outbox.contains(key) } }

    /// Returns whether exactly this record is still pending.
    func contains(_ record: OutboxRecord) -> Bool { state.withLock { $0.outbox.contains(record) } }

    var count: Int { state.withLock { $0.outbox.count } }

    /// Whether there are changes to send.
    var hasWork: Bool { count > 0 }

    /// Returns the doubts that have ended, with their ends in milliseconds since 1970, by the digest of the key.
    ///
    /// - Parameter longest: The longest duration of a doubt. A doubt that ends later than that was recorded before the
    ///   clock was set back; it counts as ended.
    func doubts(endedBy now: Timestamp, longest: Duration) -> [Digest: Int64] {
        let (first, last) = (now.milliseconds, (now + longest).milliseconds)
        return state.withLock { state in
            state.outbox.doubts.filter { $0.value <= first || $0.value > last }
        }
    }

    /// Whether the file should be compacted, because most of its records are superseded.
    var needsCompaction: Bool { state.withLock { $0.outbox.needsCompaction } }

    /// The pending records, oldest first.
    var pending: [OutboxRecord] { state.withLock { $0.outbox.pending } }

    /// Returns the records of a shorter file, and the offset up to which this file was read; nil if a shorter file is not
    /// needed.
    func replacement() -> (records: [UInt8], offset: Int64)? {
        state.withLock { state -> (records: [UInt8], offset: Int64)? in
            guard state.outbox.needsCompaction else { return nil }
            return (records: state.outbox.compacted(), offset: state.offset)
        }
    }
}
