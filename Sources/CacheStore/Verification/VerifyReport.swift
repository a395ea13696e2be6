// SPDX-License-Identifier: Apache-2.0

/// The options of a verification.
public struct VerifyOptions: Sendable {
    /// The part of the values to read.
    public enum Sample: Sendable, Equatable {
        /// Each value with this probability, 0 to 100 per cent; at least one value, unless it is 0.
        case percent(Double)
        /// This many values, each equally likely.
        case count(Int)
    }

    /// Whether to delete corrupt values and metadata, and entries whose value is missing.
    public var repair = false
    /// The random sample of the values to read, with the same share of the keys; nil for all.
    public var sample: Sample?

    /// Creates options that check everything and delete nothing.
    public init() {}

    /// The number of threads that read.
    package var threads = ShardWorkers.usualSize
}

/// The result of a verification.
public struct VerifyReport: Sendable, Equatable, Codable {
    /// A defect that a verification found.
    @nonexhaustive
    public enum Finding: Sendable, Hashable {
        /// A value whose bytes don't have the digest of its name.
        case corruptObject(Digest)
        /// An entry whose metadata can't be read or disagrees with its value; by the digest of the key.
        case corruptEntry(Digest)
        /// An entry whose value is missing; by the digest of the key.
        case danglingEntry(Digest)
    }

    /// The number of distinct values that were read.
    public package(set) var objects = 0
    /// The total length of these values in bytes.
    public package(set) var objectBytes: Int64 = 0
    /// The number of distinct values in the cache; larger than ``objects`` if only a sample was read.
    public package(set) var listedObjects = 0
    /// The number of keys that were checked.
    public package(set) var entries = 0
    /// The number of keys in the cache.
    public package(set) var listedEntries = 0
    /// Names of objects whose bytes have another digest; the first 1,000.
    public package(set) var corruptObjects: [String] = []
    /// Names of entries whose metadata can't be read or disagrees with their value; the first 1,000.
    public package(set) var corruptEntries: [String] = []
    /// Names of entries whose value is missing; the first 1,000.
    public package(set) var danglingEntries: [String] = []
    /// The number of corrupt objects.
    public package(set) var corruptObjectCount = 0
    /// The number of corrupt entries.
    public package(set) var corruptEntryCount = 0
    /// The number of entries without a value.
    public package(set) var danglingEntryCount = 0
    /// The number of entries without metadata; a put that is killed leaves such an entry.
    ///
    /// They are not damage, unless ``metadataIsLost`` is true. The next collection removes them.
    public package(set) var unfinishedEntries = 0
    /// The number of entries that were stored while the clock was ahead.
    ///
    /// They are not damage. They are misses until the clock has reached that time, or until they are stored again.
    public package(set) var futureEntries = 0
    /// Whether so many entries lack metadata that the metadata must have been lost, as in a copy of the directory without
    /// extended attributes.
    public package(set) var metadataIsLost = false
    /// The number of values that no key names; nil if only a sample was checked.
    ///
    /// The next collection removes them.
    public package(set) var orphans: Int?
    /// Files below the cache directory that do not belong to the cache.
    public package(set) var unrecognised: [String] = []
    /// The cache's files and directories that could not be read, relative to the cache directory.
    public package(set) var unreadable: [String] = []
    /// The number of corrupt, dangling and unfinished files that were deleted.
    public package(set) var repaired = 0
    /// Whether no checked file is corrupt, dangling, unreadable or lost.
    public package(set) var isClean = true

    package init() {}

    /// The maximum number of names of each kind in a report: 1,000 take 64 KB, and users read no more.
    static let longestList = 1000

    mutating func add(_ finding: Finding) {
        isClean = false
        switch finding {
        case .corruptObject(let digest): Self.add(digest, &corruptObjectCount, &corruptObjects)
        case .corruptEntry(let digest): Self.add(digest, &corruptEntryCount, &corruptEntries)
        case .danglingEntry(let digest): Self.add(digest, &danglingEntryCount, &danglingEntries)
        }
    }

    private static func add(_ digest: Digest, _ count: inout Int, _ names: inout [String]) {
        count += 1
        if count <= longestList { names.append(digest.description) }
    }
}
