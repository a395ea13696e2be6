// SPDX-License-Identifier: Apache-2.0

/// What a verification is to do.
package struct VerificationRequest: Sendable {
    /// Which part of the objects to read.
    package enum Sample: Sendable, Equatable {
        /// Each with this probability, 0 to 1; one at least, unless it is 0.
        case share(Double)
        /// So many of all, each as likely as any other.
        case count(Int)
    }

    /// Whether to delete what is corrupt or dangling.
    package var isRepairing = false
    /// nil: all of them.
    package var sample: Sample?
    /// How many threads read.
    package var threads = SweepCrew.usualSize

    package init() {}
}

/// Something that is not as it should be.
package struct VerificationFinding: Sendable, Equatable {
    package enum Kind: Sendable {
        /// An object whose bytes don't hash to its name.
        case corruptObject
        /// An entry whose record does not parse, or disagrees with the object that it names.
        case corruptEntry
        /// An entry whose object is gone, and would be a miss.
        case danglingEntry
    }

    package let kind: Kind
    /// The name of the object or entry.
    package let digest: Digest
}

/// What re-reading everything found.
package struct VerificationReport: Sendable {
    /// Objects that were read, and their length.
    package var objects = 0
    package var objectBytes: Int64 = 0
    /// Objects that there are; more than were read where only a sample was.
    package var listedObjects: Int { listed[.objects] ?? 0 }
    /// Entries that were looked at, and that there are.
    package var entries = 0
    package var listedEntries: Int { listed[.entries] ?? 0 }
    var listed: [Tree: Int] = [:]
    /// How many of each kind were found, and the first of them, so that memory is bounded whatever was damaged.
    private var findings: [VerificationFinding.Kind: (count: Int, first: [Digest])] = [:]
    /// Entries without a record: what a put leaves that is killed, or has just begun.
    ///
    /// No fault, unless they are so many that ``recordsAreLost``.
    package var unfinishedEntries = 0
    /// Objects that no entry names: the next sweep deletes them; nil where only a sample was looked at.
    package var orphans: Int?
    /// Files where nothing of ours belongs, below the cache directory.
    package var unrecognised: [String] = []
    /// Files and shards that the kernel would not have read, below the cache directory.
    package var unreadable: [String] = []
    /// Of the corrupt and dangling ones, how many were deleted on request.
    package var repaired = 0

    package init() {}

    /// How many names of each kind are kept: 1,000 take 32 KB, and nobody reads more.
    package static let longestList = 1000

    mutating func add(_ finding: VerificationFinding) {
        var (count, first) = findings.removeValue(forKey: finding.kind) ?? (0, [])
        count += 1
        if count <= Self.longestList { first.append(finding.digest) }
        findings[finding.kind] = (count, first)
    }

    /// How many of a kind were found.
    package func count(of kind: VerificationFinding.Kind) -> Int { findings[kind]?.count ?? 0 }

    /// The first of a kind that were found.
    package func first(of kind: VerificationFinding.Kind) -> [Digest] { findings[kind]?.first ?? [] }

    /// Whether everything that was looked at is as it should be.
    ///
    /// Orphans and unfinished entries are no fault.
    package var isClean: Bool { findings.isEmpty && unreadable.isEmpty && !recordsAreLost }

    /// Whether the directory looks like a copy without the records.
    package var recordsAreLost: Bool { RecordLoss.isLikely(without: unfinishedEntries, of: entries) }
}
