// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a sweep has found out about the rules and the entries that they apply to.
struct RuleWatch: Sendable {
    /// The numbers of the rules that apply to remaining entries.
    var kept: Set<UInt64> = []
    /// Whether all rules must be kept, because an entry that should have been deleted remains.
    var areAllKept = false
    /// The latest creation time of any entry.
    var latestCreated = Timestamp(nanoseconds: 0)

    mutating func add(_ other: RuleWatch) {
        kept.formUnion(other.kept)
        areAllKept = areAllKept || other.areAllKept
        latestCreated = max(latestCreated, other.latestCreated)
    }
}

/// The state and the results of a sweep so far, which its threads share.
struct SweepState {
    /// The results of one pass.
    struct Pass {
        var marks = ContentMarks(vacant: ContentMark())
        var candidates = SweepCandidates()
        /// The indices of deleted candidates that held the last reference to their object; these objects must be deleted
        /// too.
        var freed: [UInt32] = []
        /// Object shards that could not be listed, so that it is unknown which objects they contain.
        var unreadableShards: Set<Int> = []
        /// Whether some entries could not be listed or read, so that it is unknown which objects they name.
        var hasUnreadableEntries = false
        /// Bytes on disk that are not part of entries or objects.
        var overhead: Int64 = 0
        /// Whether some objects take more space than their contents.
        var hasIndexBlocks = false
        /// The deletions: all entries, the entries that were evicted to make room, and the bytes of objects.
        fileprivate(set) var deletions = (entries: 0, evictions: 0, objectBytes: Int64(0))
    }

    /// The report, without the fields that belong to the sweep as a whole.
    var report = CollectionReport()
    /// Leftovers that could not be checked or deleted.
    ///
    /// They are not part of the usage, so they do not prevent its correction.
    var stuckLeftovers: [String] = []
    var pass = Pass()
    var ruleWatch = RuleWatch()
    /// Bytes on disk of partial downloads.
    var partialBytes: Int64 = 0
    /// Whether no rules are applied because this process can't read them.
    var rulesAreUnreadable = false
    private var allocation: SweepAllocation
    private let expiredOnly: Bool
    /// In a dry run with several passes, the end of the previous pass.
    ///
    /// Entries before this position count as evicted, and removals for other reasons have already been counted.
    private var rehearsed: EvictionOrder?

    /// - Parameter blockSize: the unit of allocation of the file system; nil if a file's length does not determine its size
    ///   on disk.
    init(blockSize: Int64? = nil, expiredOnly: Bool = false) {
        allocation = SweepAllocation(blockSize: blockSize)
        self.expiredOnly = expiredOnly
    }

    /// An entry that was read, and the length of its value according to its record.
    typealias Sighting = (entry: SeenEntry, length: Int)

    /// Begins another pass: resets the counts of files that are present, but not those of deletions.
    mutating func beginPass(_ request: SweepRequest, wanted: Int) {
        if request.isDryRun, pass.candidates.isCut { rehearsed = pass.candidates.end }
        pass = Pass()
        // Created only now, so that no two lists exist at a time.
        if !expiredOnly, request.limits.areBounding {
            pass.candidates = SweepCandidates(wanted: wanted, limit: request.candidateLimit)
        }
        report.entries = CollectionReport.Tally()
        report.objects = CollectionReport.Tally()
    }

    // MARK: Scanning

    /// Records a batch of entries that were read; returns the removals of those that must be deleted regardless of the
    /// limits on all entries together.
    ///
    /// It handles a batch because the caller locks the state for each call.
    mutating func note(_ sightings: [Sighting]) -> [Removal] {
        var removals: [Removal] = []
        for (entry, length) in sightings {
            if let rehearsed, entry.verdict == nil, entry.order < rehearsed { continue }
            if entry.verdict != .corrupt {
                let sizeClass = allocation.classNumber(ofLength: length)
                pass.marks[entry.content].noteReference(sizeClass: sizeClass)
            }
            report.entries.add(entry.allocatedSize.bytes)
            if let reason = entry.verdict {
                if !expiredOnly || reason == .expired || reason == .cleared {
                    removals.append(Removal(entry, reason))
                }
            } else if entry.isSelected {
                pass.candidates.add(entry)
            }
        }
        return removals
    }

    /// Records an object after all entries were read; returns its removal if no entry names it.
    ///
    /// If some entries could not be read, objects that no known entry names are kept, because an unreadable entry may
    /// name them. Objects whose known entries were all deleted are removed nevertheless. If an unreadable entry shares
    /// such a value, that entry loses its value.
    mutating func noteObject(_ digest: Digest, _ status: FileStatus) -> Removal? {
        let size = AllocatedSize(bytes: status.allocatedSize)
        allocation.note(size, ofClass: pass.marks[digest].sizeClass)
        return noteObject(digest, inode: UInt32(truncatingIfNeeded: status.identity.inode), size)
    }

    /// Records a listed object, and adds it to `unreferenced` if no entry names it; returns false, and records nothing,
    /// if the object's size on disk must be read.
    mutating func noteListedObject(_ file: Store.File, _ unreferenced: inout [Removal]) -> Bool {
        guard file.isRegular, let size = allocation.size(ofClass: pass.marks[file.digest].sizeClass)
        else { return false }
        if let object = noteObject(file.digest, inode: file.inode, size) { unreferenced.append(object) }
        return true
    }

    private mutating func noteObject(_ digest: Digest, inode: UInt32, _ size: AllocatedSize) -> Removal? {
        var mark = pass.marks[digest]
        mark.presence = .present
        mark.allocatedSize = size
        pass.marks[digest] = mark
        report.objects.add(size.bytes)
        guard mark.references == 0 else { return nil }
        if mark.freed == nil {
            if expiredOnly { return nil }
            if pass.hasUnreadableEntries {
                report.spared += 1
                return nil
            }
        }
        return Removal(object: digest, size, freed: mark.freed, inode: inode)
    }

    /// Records that an object exists, but could not be checked.
    mutating func noteUnreadableObject(_ digest: Digest) {
        pass.marks[digest].presence = .unreadable
    }

    /// Returns whether an object that entries name is certainly missing; called after all objects were listed.
    private func isMissing(_ content: Digest) -> Bool {
        pass.marks[content].isMissing && !pass.unreadableShards.contains(content.shard)
    }

    /// Returns the removals of entries whose objects are missing; called after all objects were listed.
    func dangling(_ sightings: [Sighting]) -> [Removal] {
        sightings.filter { $0.entry.verdict == nil && isMissing($0.entry.content) }
            .map { Removal($0.entry, .dangling) }
    }

    /// Drops the candidates whose object is missing; returns false if all objects that entries name were found.
    mutating func dropMissing() -> Bool {
        guard pass.marks.values.contains(where: { $0.isMissing }) else { return false }
        var candidates = exchange(&pass.candidates, with: SweepCandidates())
        candidates.keep { !isMissing($0.content) }
        pass.candidates = candidates
        return true
    }

    // MARK: Limits

    /// The space and the entries of the files that were found and not deleted.
    var occupancy: Occupancy {
        let bytes = report.entries.bytes + report.objects.bytes + partialBytes
        return Occupancy(bytes: bytes, overhead: pass.overhead, entries: report.entries.count)
    }

    /// Returns the current excess over the limits, given the free space that was missing at the start.
    func excess(over limits: CacheLimits, _ shortfall: Int64?) -> Excess {
        var excess = limits.excess(of: occupancy)
        if let shortfall { excess.freeSpace = shortfall - report.removedInAll.bytes }
        return excess
    }

    // MARK: Deleting

    /// Records the outcomes of attempts to delete files that were counted as present.
    mutating func note(_ removals: [Removal], _ outcomes: [DeletionOutcome]) {
        let ended = zip(removals, outcomes)
        let isRepeated = rehearsed != nil
        report.removed.add(
            ended.lazy.filter { $1.isDeletion && (!isRepeated || $0.reason.isEviction) }.map(\.0)
        )
        for (removal, outcome) in ended {
            if !outcome.isDeletion, removal.entry != nil,
                removal.reason == .cleared || removal.reason == .expired
            {
                ruleWatch.areAllKept = true
            }
            switch outcome {
            case .deleted: noteDeletion(removal)
            case .spared: report.spared += 1
            case .skipped: break
            case .refused(let path): report.unreadable.append(path)
            }
        }
    }

    private mutating func noteDeletion(_ removal: Removal) {
        let (reason, size) = (removal.reason, removal.allocatedSize.bytes)
        guard let entry = removal.entry else {
            report.objects.subtract(size)
            return pass.deletions.objectBytes += size
        }
        report.entries.subtract(size)
        pass.deletions.entries += 1
        if reason.isEviction { pass.deletions.evictions += 1 }
        guard entry.verdict != .corrupt else { return }
        let isLast = pass.marks[entry.content].noteRemoval(reason)
        if isLast, pass.marks[entry.content].presence == .present, let place = removal.place {
            pass.freed.append(place)
        }
    }

    /// Returns whether the deletion was not reported by an earlier pass of a dry run: each pass finds the same files.
    func isNews(_ removal: Removal) -> Bool { rehearsed == nil || removal.reason.isEviction }

    /// Returns the removal of the object whose last reference was the deleted candidate at `place`.
    func unreferenced(at place: UInt32) -> Removal {
        let content = pass.candidates.entries[Int(place)].content
        let mark = pass.marks[content]
        return Removal(object: content, mark.allocatedSize, freed: mark.freed)
    }

    /// The report, sorted and without duplicates: several passes may report the same file.
    var finishedReport: CollectionReport {
        var report = report
        report.removed = report.removed.filter { $0.value.count > 0 }
        report.unrecognised = Set(report.unrecognised).sorted()
        report.unreadable = Set(report.unreadable + stuckLeftovers).sorted()
        return report
    }
}
