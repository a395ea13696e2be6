// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What a collection is to do.
///
/// With the defaults it removes what is of no use, leftovers of killed processes, expired and broken entries and bytes
/// that no key names, and what is over the directory's own limits (``CacheLimits``). A limit given here takes the
/// place of the directory's for this once.
public struct CollectionOptions: Sendable {
    /// Bytes on disk that the directory may take, its own files included; over that the least recently used go.
    public var maximumSize: ByteCount?
    /// Entries that may stay; over that the least recently used go.
    public var maximumEntries: Int?
    /// How long ago an entry may have been stored.
    public var maximumAge: Duration?
    /// How long ago an entry may have been used last.
    public var maximumIdleTime: Duration?
    /// What is to be available on the file system; short of that the least recently used go.
    public var minimumFree: CacheLimits.FreeSpace?
    /// Only expired entries and their bytes, and temporary files of killed processes; the limits are not
    /// looked at.
    public var expiredOnly = false
    /// Decide everything and delete nothing.
    public var isDryRun = false
    /// How long to wait while another process collects; zero: not at all.
    public var patience: Duration = .seconds(60)
    /// How long to take at most, with the waiting; nil: to the end.
    ///
    /// Expired entries are removed first.
    public var timeLimit: Duration?

    /// How fast to work.
    public var pace = Pace.full
    /// Asked now and then, on any thread: true ends it although it is not done, as when its time is over; nil:
    /// nobody calls it off.
    public var isCalledOff: (@Sendable () -> Bool)?

    /// How fast a collection works.
    public enum Pace: Sendable {
        /// As fast as it can, on several threads.
        case full
        /// A fifth of one processor: it works for 4 ms and then rests for 16 ms.
        case sparing
    }

    /// The directory's limits, or another size.
    public init(maximumSize: ByteCount? = nil) {
        self.maximumSize = maximumSize
    }

    /// - Parameter limits: those of the directory.
    func request(_ limits: SweepLimits) throws(CacheError) -> SweepRequest {
        for (name, value) in [("age", maximumAge), ("idle time", maximumIdleTime), ("patience", patience)] {
            guard value ?? .zero >= .zero else {
                throw CacheError(.invalidArgument, "limit the \(name): it can't be negative: use 0 or more")
            }
        }
        guard maximumEntries ?? 0 >= 0 else {
            throw CacheError(.invalidArgument, "limit the entries: it can't be negative: use 0 or more")
        }
        var request = SweepRequest()
        request.limits.maximumSize = maximumSize?.bytes ?? limits.maximumSize
        request.limits.maximumEntries = maximumEntries ?? limits.maximumEntries
        request.limits.maximumAge = maximumAge ?? limits.maximumAge
        request.limits.maximumIdleTime = maximumIdleTime ?? limits.maximumIdleTime
        request.limits.minimumFree = minimumFree?.floor ?? limits.minimumFree
        request.expiredOnly = expiredOnly
        request.isDryRun = isDryRun
        request.patience = patience
        if pace == .sparing {
            request.pace = .sparing { rest in
                sleepThread(for: rest)
                return true
            }
        }
        request.pace.isCalledOff = isCalledOff
        if let timeLimit {
            request.pace.deadline = .now + .nanoseconds(max(0, timeLimit.saturatingNanoseconds))
        }
        return request
    }
}

/// Why something was removed from the cache.
///
/// Every removal has exactly one reason.
@nonexhaustive
public enum RemovalReason: String, Sendable, Codable, CaseIterable, CodingKeyRepresentable {
    /// A file in `tmp`, or the lock of a computation, whose process is gone.
    case staleTemporary
    /// An entry past its expiration, and past the time it might still be given out stale.
    case expired
    /// An entry whose bytes are gone.
    case dangling
    /// An entry whose metadata can't be read.
    case corrupt
    /// Bytes that no key names.
    case orphan
    /// An entry older than the age limit.
    case age
    /// An entry unused for longer than the idle limit.
    case idle
    /// An entry too many, the least recently used first.
    case entries
    /// An entry over the size limit, the least recently used first.
    case size
    /// An entry that had to go for the file system to keep some space free, the least recently used first.
    case freeSpace

    init(_ reason: SweepReason) {
        self =
            switch reason {
            case .staleTemporary: .staleTemporary
            case .expired: .expired
            case .dangling: .dangling
            case .corrupt: .corrupt
            case .orphan: .orphan
            case .age: .age
            case .idle: .idle
            case .entries: .entries
            case .size: .size
            case .freeSpace: .freeSpace
            }
    }
}

/// What a collection did, or in a dry run would have done.
public struct CollectionReport: Sendable, Equatable, Codable {
    /// How many of a kind, and what they take.
    public struct Tally: Sendable, Equatable, Codable {
        /// How many.
        public var count: Int
        /// Bytes on disk.
        public var bytes: Int64

        init(_ tally: SweepTally) {
            count = tally.count
            bytes = tally.bytes
        }
    }

    /// What was removed and why; reasons that removed nothing are left out.
    ///
    /// The bytes of an entry include those of its value where no other key shares it.
    public let removed: [RemovalReason: Tally]
    /// Entries that are left, with the bytes of their own files.
    public let entries: Tally
    /// Distinct values that are left.
    public let objects: Tally
    /// What somebody used or changed while it was about to go, what is too young to tell, and what a key may name
    /// that could not be read: it stays.
    public let spared: Int
    /// Locks that were not to be had, because a process that holds one is stopped; what they guard was
    /// left alone.
    public let skippedStripes: [String]
    /// Files in the cache that are not ours, below its directory: they are never touched.
    public let unrecognised: [String]
    /// Files and directories of ours that the kernel would not have read or removed, below the cache directory:
    /// they were left alone, and what only they may name with them.
    public let unreadable: [String]
    /// Whether this was a rehearsal.
    public let isDryRun: Bool
    /// False where the time ran out: the rest is left to the next collection, and what is left was not all
    /// counted.
    public let isComplete: Bool

    init(_ report: SweepReport, isDryRun: Bool) {
        removed = Dictionary(
            uniqueKeysWithValues: report.removed.map { (RemovalReason($0), Tally($1)) }
        )
        entries = Tally(report.entries)
        objects = Tally(report.objects)
        spared = report.spared
        skippedStripes = report.skippedStripes
        unrecognised = report.unrecognised
        unreadable = report.unreadable
        self.isDryRun = isDryRun
        isComplete = report.isComplete
    }

    /// Bytes on disk that all removals set free.
    public var removedBytes: Int64 { removed.values.reduce(0) { $0 + $1.bytes } }
}

/// How far long work has come.
public struct CacheProgress: Sendable {
    /// What is being done, in words.
    public let phase: String
    /// Steps done, of ``total``.
    public let done: Int
    /// Steps in all.
    public let total: Int
    /// Keys or values looked at in this phase so far; nil where they are not counted.
    public let items: Int?
    /// Bytes read in this phase so far; nil where none are.
    public let bytes: Int64?

    init(_ progress: SweepProgress) {
        phase = progress.phase.rawValue
        done = progress.done
        total = progress.total
        items = progress.items
        bytes = progress.bytes
    }
}
