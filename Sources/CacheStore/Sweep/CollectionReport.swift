// SPDX-License-Identifier: Apache-2.0

/// What a collection did, or would have done if it was a dry run.
public struct CollectionReport: Sendable, Equatable, Codable {
    /// A number of files, and the bytes that they take on disk.
    public struct Tally: Sendable, Equatable, Codable {
        /// How many.
        public var count: Int
        /// Bytes on disk.
        public var bytes: Int64

        package init(count: Int = 0, bytes: Int64 = 0) {
            self.count = count
            self.bytes = bytes
        }

        mutating func add(_ size: Int64) { self += Tally(count: 1, bytes: size) }

        mutating func subtract(_ size: Int64) { self += Tally(count: -1, bytes: -size) }

        static func += (left: inout Tally, right: Tally) {
            left.count += right.count
            left.bytes += right.bytes
        }
    }

    /// The removed files by reason, without the reasons that removed none.
    ///
    /// The bytes of an entry include those of its value, unless another key shares it.
    public package(set) var removed: [RemovalReason: Tally] = [:]
    /// Entries that are left, with the bytes of their own files.
    public package(set) var entries = Tally()
    /// Distinct values that are left.
    public package(set) var objects = Tally()
    /// The number of files that were left alone: they were used or changed meanwhile, are too young to be judged, or may be
    /// named by an entry that could not be read.
    public package(set) var spared = 0
    /// Locks that were not free because a process that holds them is stopped.
    ///
    /// The files that they guard were left alone.
    public package(set) var skippedStripes: [String] = []
    /// Files below the cache directory that are not the cache's.
    ///
    /// They are never touched.
    public package(set) var unrecognised: [String] = []
    /// The cache's files and directories that could not be read or removed, below its directory.
    ///
    /// They were left alone, and so was what only they may name.
    public package(set) var unreadable: [String] = []
    /// Whether this was a dry run.
    public package(set) var isDryRun = false
    /// False if the time ran out: the next collection does the rest, and ``entries`` and ``objects`` are incomplete.
    public package(set) var isComplete = true
    /// How long it worked, not counting pauses.
    package var worked: Duration = .zero
    /// By how much the counted usage exceeded the usage that it found (negative: fell short); nil if it did not count, or was
    /// a dry run.
    package var drift: Tally?
    /// For how long the most recently used of the entries that were evicted to make room had not been used; nil if there were
    /// none.
    package var evictionAge: Duration?
    /// Whether an eviction has come to the end of its list, or there is no list: only a sweep can find the next entries.
    ///
    /// A collection is never one of these.
    package var isExhausted = false

    package init() {}

    /// The removed files of all reasons together.
    package var removedInAll: Tally { removed.values.reduce(into: Tally()) { $0 += $1 } }

    /// The removed files that were of no use any more.
    var garbage: Tally {
        removed.reduce(into: Tally()) { if !$1.key.isEviction { $0 += $1.value } }
    }

    /// Bytes on disk that all removals freed.
    public var removedBytes: Int64 { removedInAll.bytes }

    private enum CodingKeys: String, CodingKey {
        case removed, entries, objects, spared, skippedStripes, unrecognised, unreadable, isDryRun, isComplete
    }

    /// Whether both tell the same: what the package keeps beside it is neither encoded nor compared.
    public static func == (left: CollectionReport, right: CollectionReport) -> Bool {
        left.removed == right.removed && left.entries == right.entries && left.objects == right.objects
            && left.spared == right.spared && left.skippedStripes == right.skippedStripes
            && left.unrecognised == right.unrecognised && left.unreadable == right.unreadable
            && left.isDryRun == right.isDryRun && left.isComplete == right.isComplete
    }
}

/// The progress of a long operation.
public struct CacheProgress: Sendable {
    /// The work at this moment; the raw value is a text for users.
    @nonexhaustive
    public enum Phase: String, Sendable {
        /// The collection of another process, or a writer, holds what this one needs.
        case waiting = "waiting for other writers"
        /// A collection looks at every file.
        case scanning = "scanning"
        /// A collection removes values.
        case deleting = "deleting"
        /// A verification reads the values.
        case verifying = "verifying values"
        /// A verification compares the keys' metadata with the values.
        case verifyingEntries = "verifying keys"
    }

    /// The work at this moment.
    public let phase: Phase
    /// Steps done, of ``total``.
    public let done: Int
    /// Steps in all.
    public let total: Int
    /// Keys or values looked at so far in this phase; nil if they are not counted.
    public let items: Int?
    /// Bytes read so far in this phase; nil if it reads none.
    public let bytes: Int64?

    package init(_ phase: Phase, done: Int, total: Int, items: Int? = nil, bytes: Int64? = nil) {
        self.phase = phase
        self.done = done
        self.total = total
        self.items = items
        self.bytes = bytes
    }
}
