// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What waits in the outbox of a directory, as this process follows it: it reads what was appended since the
/// last look.
final class OutboxView: Sendable {
    private struct State {
        var outbox = Outbox()
        /// The file that was read; nil: there was none.
        var identity: FileStatus.Identity?
        /// How far.
        var offset: Int64 = 0
        /// What there was no room for, as far as somebody was told.
        var refused = 0
    }

    private let state = Locked(State())

    /// Reads what others have written.
    ///
    /// One system call where there is nothing new, else three more.
    ///
    /// - Returns: records that there was no room for since the last time.
    @discardableResult
    func follow(_ file: OutboxFile) throws(Errno) -> Int {
        let mark = try file.mark()
        return try state.withLock { (state) throws(Errno) -> Int in
            guard let mark else {
                state = State()
                return 0
            }
            if mark.identity == state.identity, mark.size <= state.offset { return 0 }
            if mark.identity != state.identity || mark.size < state.offset {
                state = State()
                state.identity = mark.identity
            }
            guard let (identity, bytes) = try file.read(from: state.offset) else {
                state = State()
                return 0
            }
            if identity != state.identity {
                // Replaced between the two looks: it is read from its beginning the next time.
                state = State()
                return 0
            }
            let (records, count) = OutboxRecord.all(in: bytes)
            for record in records { state.outbox.read(record.encoded()) }
            state.offset += Int64(count)
            let refused = state.outbox.refusedRecords - state.refused
            state.refused = state.outbox.refusedRecords
            return refused
        }
    }

    /// Whether anything waits for this key.
    func contains(_ key: Digest) -> Bool { state.withLock { $0.outbox.contains(key) } }

    /// Whether this very work still waits.
    func contains(_ record: OutboxRecord) -> Bool { state.withLock { $0.outbox.contains(record) } }

    var count: Int { state.withLock { $0.outbox.count } }

    /// Whether there is something to send.
    var hasWork: Bool { state.withLock { $0.outbox.count > $0.outbox.avoidedCount } }

    /// Keys to be avoided only.
    var avoidedCount: Int { state.withLock { $0.outbox.avoidedCount } }

    /// Whether most of the file counts no more.
    var needsCompaction: Bool { state.withLock { $0.outbox.needsCompaction } }

    /// What waits, the oldest first.
    var pending: [OutboxRecord] { state.withLock { $0.outbox.pending } }

    /// What should take the place of the file, and up to where that was read; nil: it is good as it is.
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
