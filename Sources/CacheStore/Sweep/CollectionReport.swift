// SPDX-License-Identifier: Apache-2.0

/// The result of a collection, or of a dry run.
public struct CollectionReport: Sendable, Equatable, Codable {
    /// A number of files, and the bytes that they take on disk.
    public struct Tally: Sendable, Equatable, Codable {
        /// The number of files.
        public var count: Int
        /// The bytes on disk.
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

    /// The removed files by reason; reasons for which no file was removed are missing.
    ///
    /// The bytes of an entry include those of its value, unless another key shares the value.
    public package(set) var removed: [RemovalReason: Tally] = [:]
    /// The entries that are left, with the bytes of their own files.
    public package(set) var entries = Tally()
    /// The distinct values that are left.
    public package(set) var objects = Tally()
    /// The number of files that were kept because they were used or changed during the collection, are too young to be
    /// judged, or may be named by an entry that could not be read.
    public package(set) var spared = 0
    /// Locks that could not be acquired because a process that holds them is stopped.
    ///
    /// The files that they guard were left alone.
    public package(set) var skippedStripes: [String] = []
    /// Files below the cache directory that do not belong to the cache.
    ///
    /// They are never touched.
    public package(set) var unrecognised: [String] = []
    /// The cache's files and directories that could not be read or removed, relative to the cache directory.
    ///
    /// The collection left these files alone, and also files that only they may name.
    public package(set) var unreadable: [String] = []
    /// Whether this was a dry run.
    public package(set) var isDryRun = false
    /// Whether the collection finished in time.
    ///
    /// If it is false, ``entries`` and ``objects`` are incomplete. The next collection does the rest.
    public package(set) var isComplete = true
    /// The working time, without pauses.
    package var worked: Duration = .zero
    /// The recorded usage minus the usage that this collection found; nil if it did not compare them, or was a dry run.
    package var drift: Tally?
    /// How long the most recently used of the entries that were evicted to make room had been unused; nil if none was
    /// evicted.
    package var evictionAge: Duration?
    /// Whether an eviction has reached the end of the list of candidates, or found no list, so that only a sweep can find
    /// the next entries.
    ///
    /// It is always false for a collection.
    package var isExhausted = false

    package init() {}

    /// The removed files of all reasons together.
    package var removedInAll: Tally { removed.values.reduce(into: Tally()) { $0 += $1 } }

    /// The removed files that were no longer of any use.
    var garbage: Tally {
        removed.reduce(into: Tally()) { if !$1.key.isEviction { $0 += $1.value } }
    }

    /// The bytes on disk that all removals together freed.
    public var removedBytes: Int64 { removedInAll.bytes }

    private enum CodingKeys: String, CodingKey {
        case removed, entries, objects, spared, skippedStripes, unrecognised, unreadable, isDryRun, isComplete
    }

    /// Returns whether both reports are equal, apart from the properties that are not public; those are not encoded
    /// either.
    public static func == (left: CollectionReport, right: CollectionReport) -> Bool {
        left.removed == right.removed && left.entries == right.entries && left.objects == right.objects
            && left.spared == right.spared && left.skippedStripes == right.skippedStripes
            && left.unrecognised == right.unrecognised && left.unreadable == right.unreadable
            && left.isDryRun == right.isDryRun && left.isComplete == right.isComplete
    }
}

/// The progress of a long operation.
public struct CacheProgress: Sendable {
    /// The kind of work in progress; the raw value is a text for users.
    @nonexhaustive
    public enum Phase: String, Sendable {
        /// The operation waits for another process: for its collection, or for a writer.
        case waiting = "waiting for other writers"
        /// A collection checks every file.
        case scanning = "scanning"
        /// A collection removes values.
        case deleting = "deleting"
        /// A verification reads the values.
        case verifying = "verifying values"
        /// A verification compares the keys' metadata with the values.
        case verifyingEntries = "verifying keys"
    }

    /// The kind of work in progress.
    public let phase: Phase
    /// The number of finished steps, of ``total``.
    public let done: Int
    /// The total number of steps.
    public let total: Int
    /// The number of keys or values processed so far in this phase; nil if they are not counted.
    public let items: Int?
    /// The bytes read so far in this phase; nil if the phase reads none.
    public let bytes: Int64?

    package init(_ phase: Phase, done: Int, total: Int, items: Int? = nil, bytes: Int64? = nil) {
        self.phase = phase
        self.done = done
        self.total = total
        self.items = items
        self.bytes = bytes
    }
}
