// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// What a verification does.
public struct VerifyOptions: Sendable {
    /// Which part of the values to read.
    public enum Sample: Sendable, Equatable {
        /// Each value with this probability, 0 to 100 per cent; at least one value, unless it is 0.
        case percent(Double)
        /// This many, each equally likely.
        case count(Int)
    }

    /// Whether to delete what is corrupt, and entries whose value is gone.
    public var repair = false
    /// Read only a random sample of the values, and check the same share of the keys; nil for all.
    public var sample: Sample?

    /// Check everything and delete nothing.
    public init() {}

    func request() throws(CacheError) -> VerificationRequest {
        var request = VerificationRequest()
        request.isRepairing = repair
        switch sample {
        case nil: break
        case .percent(let percent) where (0...100).contains(percent): request.sample = .share(percent / 100)
        case .count(let count) where count >= 0: request.sample = .count(count)
        case .percent(let percent):
            throw CacheError(.invalidArgument, "verify \(percent) per cent: use 0 to 100")
        case .count(let count):
            throw CacheError(.invalidArgument, "verify \(count) values: it can't be negative: use 0 or more")
        }
        return request
    }
}

/// What a verification found.
public struct VerifyReport: Sendable, Equatable, Codable {
    /// Distinct values that were read.
    public let objects: Int
    /// Their total length.
    public let objectBytes: Int64
    /// Distinct values in the cache: more than were read if only a sample was.
    public let listedObjects: Int
    /// Keys that were checked.
    public let entries: Int
    /// Keys in the cache.
    public let listedEntries: Int
    /// Names of objects whose bytes have another digest; the first 1,000.
    public let corruptObjects: [String]
    /// Names of entries whose metadata can't be read or disagrees with their value; the first 1,000.
    public let corruptEntries: [String]
    /// Names of entries whose value is gone; the first 1,000.
    public let danglingEntries: [String]
    /// How many objects were corrupt.
    public let corruptObjectCount: Int
    /// How many entries were corrupt.
    public let corruptEntryCount: Int
    /// How many entries had no value.
    public let danglingEntryCount: Int
    /// Entries without metadata, as a killed put leaves them.
    ///
    /// Not damage, unless ``metadataIsLost``. The next collection removes them.
    public let unfinishedEntries: Int
    /// Whether so many entries are without metadata that it must have been lost, as in a copy of the directory
    /// without extended attributes.
    public let metadataIsLost: Bool
    /// Values that no key names; nil if only a sample was checked.
    ///
    /// The next collection removes them.
    public let orphans: Int?
    /// Files below the cache directory that are not the cache's.
    public let unrecognised: [String]
    /// The cache's files and directories that could not be read, below its directory.
    public let unreadable: [String]
    /// How many corrupt, dangling and unfinished ones were deleted.
    public let repaired: Int
    /// Whether nothing that was checked is corrupt, dangling, unreadable or lost.
    public let isClean: Bool

    init(_ report: VerificationReport) {
        objects = report.objects
        objectBytes = report.objectBytes
        listedObjects = report.listedObjects
        entries = report.entries
        listedEntries = report.listedEntries
        corruptObjects = report.first(of: .corruptObject).map(\.description)
        corruptEntries = report.first(of: .corruptEntry).map(\.description)
        danglingEntries = report.first(of: .danglingEntry).map(\.description)
        corruptObjectCount = report.count(of: .corruptObject)
        corruptEntryCount = report.count(of: .corruptEntry)
        danglingEntryCount = report.count(of: .danglingEntry)
        unfinishedEntries = report.unfinishedEntries
        metadataIsLost = report.recordsAreLost
        orphans = report.orphans
        unrecognised = report.unrecognised
        unreadable = report.unreadable
        repaired = report.repaired
        isClean = report.isClean
    }
}

extension VerifyReport {
    /// Something that a verification found.
    @nonexhaustive
    public enum Finding: Sendable, Equatable {
        /// A value whose bytes don't have the digest that it is named by.
        case corruptObject(ContentDigest)
        /// An entry whose metadata can't be read or disagrees with its value; by the digest of the key.
        case corruptEntry(ContentDigest)
        /// An entry whose value is gone; by the digest of the key.
        case danglingEntry(ContentDigest)

        init(_ finding: VerificationFinding) {
            let digest = ContentDigest(finding.digest)
            self =
                switch finding.kind {
                case .corruptObject: .corruptObject(digest)
                case .corruptEntry: .corruptEntry(digest)
                case .danglingEntry: .danglingEntry(digest)
                }
        }
    }
}
