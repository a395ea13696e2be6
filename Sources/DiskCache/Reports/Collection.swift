// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What a collection does.
///
/// With the defaults it removes what nobody needs, that is leftovers of killed processes, expired and damaged
/// entries, and bytes that no key names, and what exceeds the directory's own limits (``CacheLimits``). A limit
/// given here replaces the directory's for this collection.
public struct CollectionOptions: Sendable {
    /// Bytes on disk that the directory may take, its own files included.
    ///
    /// Beyond that the least recently used entries go.
    public var maximumSize: ByteCount?
    /// Entries that may stay.
    ///
    /// Beyond that the least recently used ones go.
    public var maximumEntries: Int?
    /// How long ago an entry may have been stored.
    public var maximumAge: Duration?
    /// How long ago an entry may have been used last.
    public var maximumIdleTime: Duration?
    /// What must be available on the file system.
    ///
    /// If less is, the least recently used entries go.
    public var minimumFree: CacheLimits.FreeSpace?
    /// Remove only expired entries and their bytes, and temporary files of killed processes, whatever the
    /// limits are.
    public var expiredOnly = false
    /// Decide everything and delete nothing.
    public var isDryRun = false
    /// How long to wait while another process collects; zero for not at all.
    public var patience: Duration = .seconds(60)
    /// How long to take at most, including the wait; nil for as long as it takes.
    ///
    /// Expired entries are removed first.
    public var timeLimit: Duration?

    /// How fast to work.
    public var pace = Pace.full
    /// Called now and then, on any thread: if it returns true the collection ends early, as if its time was up;
    /// nil to never end it early.
    public var isCalledOff: (@Sendable () -> Bool)?

    /// How fast a collection works.
    public enum Pace: Sendable {
        /// As fast as it can, on several threads.
        case full
        /// A fifth of one processor: it works for 4 ms and then rests for 16 ms.
        case sparing
    }

    /// The directory's limits, or another size limit.
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
    /// An entry past its expiration and its stale period.
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
    /// An entry beyond the limit on their number, the least recently used first.
    case entries
    /// An entry beyond the size limit, the least recently used first.
    case size
    /// An entry that had to go to keep space free on the file system, the least recently used first.
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

/// What a collection did, or would have done if it was a dry run.
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
    /// The bytes of an entry include those of its value, unless another key shares it.
    public let removed: [RemovalReason: Tally]
    /// Entries that are left, with the bytes of their own files.
    public let entries: Tally
    /// Distinct values that are left.
    public let objects: Tally
    /// What was left alone because somebody used or changed it meanwhile, because it is too young to tell, or
    /// because an entry that could not be read may name it.
    public let spared: Int
    /// Locks that were not free because a process that holds them is stopped; what they guard was left alone.
    public let skippedStripes: [String]
    /// Files below the cache directory that are not the cache's.
    ///
    /// They are never touched.
    public let unrecognised: [String]
    /// The cache's files and directories that could not be read or removed, below its directory.
    ///
    /// They were left alone, and so was what only they may name.
    public let unreadable: [String]
    /// Whether this was a dry run.
    public let isDryRun: Bool
    /// False if the time ran out: the next collection does the rest, and what is left was not counted
    /// completely.
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

    /// Bytes on disk that all removals freed.
    public var removedBytes: Int64 { removed.values.reduce(0) { $0 + $1.bytes } }
}

/// The progress of a long operation.
public struct CacheProgress: Sendable {
    /// What is being done, in words.
    public let phase: String
    /// Steps done, of ``total``.
    public let done: Int
    /// Steps in all.
    public let total: Int
    /// Keys or values looked at so far in this phase; nil if they are not counted.
    public let items: Int?
    /// Bytes read so far in this phase; nil if it reads none.
    public let bytes: Int64?

    init(_ progress: SweepProgress) {
        phase = progress.phase.rawValue
        done = progress.done
        total = progress.total
        items = progress.items
        bytes = progress.bytes
    }
}
