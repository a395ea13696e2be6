// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials

/// What the last collection of any process did, as it has left word of it in the directory.
public struct SweepSummary: Sendable, Equatable, Codable {
    /// The number of the process.
    public let process: Int32
    /// When it began.
    public let began: Date
    /// When it ended; nil: it is under way, or its process was killed.
    public let ended: Date?
    /// How long it worked, its rests left out.
    public let worked: Duration
    /// Whether it looked only for expired values and what killed processes have left.
    public let expiredOnly: Bool
    /// Whether it came to its end.
    public let isComplete: Bool
    /// What was removed and why; reasons that removed nothing are left out.
    public let removed: [RemovalReason: Tally]
    /// Entries that were left, with the bytes of their own files.
    public let entries: Tally
    /// Distinct values that were left.
    public let objects: Tally
    /// By how much more than it found the processes had added up, negative: less; nil where it did not count.
    public let drift: Tally?
    /// When the last one began that looked at everything and came to its end; nil: there was none.
    public let lastFull: Date?

    init(_ record: SweepRecord) {
        process = record.process
        began = record.began.date
        ended = record.ended?.date
        worked = record.busy
        expiredOnly = record.expiredOnly
        isComplete = record.isComplete
        removed = Dictionary(
            uniqueKeysWithValues: record.removed.map { (RemovalReason($0), Tally($1)) }
        )
        entries = Tally(record.entries)
        objects = Tally(record.objects)
        drift = record.drift.map { Tally($0) }
        lastFull = record.lastFull?.began.date
    }

    /// Bytes on disk that all removals set free.
    public var removedBytes: Int64 { removed.values.reduce(0) { $0 + $1.bytes } }
}

extension SharedCache {
    /// What the last collection of any process did, or, while one is under way, has said so far; nil: there
    /// was none, or it left no word.
    ///
    /// Takes no lock. About six system calls.
    ///
    /// - Throws: ``CacheError``, only with the code `closed`.
    public func lastSweep() throws(CacheError) -> SweepSummary? {
        try withStore { (store, _) throws(StoreError) in store.lastSweep().map { SweepSummary($0) } }
    }
}
