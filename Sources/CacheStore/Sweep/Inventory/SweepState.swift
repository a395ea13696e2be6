// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a sweep has seen of the entries that rules are meant for.
struct RuleWatch: Sendable {
    /// The numbers of rules that are meant for entries which stay.
    var kept: Set<UInt64> = []
    /// Whether something stays that was to go, whatever rule it was for.
    var areAllKept = false
    /// The latest time of creation of any entry.
    var latestCreated = Timestamp(nanoseconds: 0)

    mutating func add(_ other: RuleWatch) {
        kept.formUnion(other.kept)
        areAllKept = areAllKept || other.areAllKept
        latestCreated = max(latestCreated, other.latestCreated)
    }
}

/// What a sweep has seen and done so far, which its threads share.
struct SweepState {
    /// What one pass has seen and done.
    struct Pass {
        var marks = ContentMarks(vacant: ContentMark())
        var candidates = SweepCandidates()
        /// Places of the deleted candidates that were the last to name their objects: these have to be deleted too.
        var freed: [UInt32] = []
        /// Shards of objects that could not be listed: their contents are unknown.
        var unreadableShards: Set<Int> = []
        /// Whether an entry may name objects without that being known.
        var hasUnreadableEntries = false
        /// Bytes on disk beside entries and objects.
        var overhead: Int64 = 0
        /// Whether objects take more than their contents.
        var hasIndexBlocks = false
        /// The deletions: entries, those of them that were evicted to make room, and bytes of objects.
        fileprivate(set) var deletions = (entries: 0, evictions: 0, objectBytes: Int64(0))
    }

    /// Without what belongs to the sweep as a whole.
    var report = CollectionReport()
    /// Leftovers that can't be looked at or deleted.
    ///
    /// They are not part of the usage, so that can be corrected all the same.
    var stuckLeftovers: [String] = []
    var pass = Pass()
    var ruleWatch = RuleWatch()
    /// Bytes on disk of partial downloads.
    var partialBytes: Int64 = 0
    /// Whether it goes by no rules, as this process can't read them.
    var rulesAreUnreadable = false
    private var allocation: SweepAllocation
    private let expiredOnly: Bool
    /// In a dry run with several passes, the end of the pass before: entries up to there count as evicted, and removals for other
    /// reasons have been counted.
    private var rehearsed: EvictionOrder?

    /// - Parameter blockSize: in which the file system gives out space; nil where a file's length does not tell what
    ///   it takes.
    init(blockSize: Int64? = nil, expiredOnly: Bool = false) {
        allocation = SweepAllocation(blockSize: blockSize)
        self.expiredOnly = expiredOnly
    }

    /// An entry that was read, and the length of its value by its record.
    typealias Sighting = (entry: SeenEntry, length: Int)

    /// Resets the counts of present files, but not those of deletions, before another pass.
    mutating func beginPass(_ request: SweepRequest, wanted: Int) {
        if request.isDryRun, pass.candidates.isCut { rehearsed = pass.candidates.end }
        pass = Pass()
        // Only now, so that there is one of each at a time.
        if !expiredOnly, request.limits.areBounding {
            pass.candidates = SweepCandidates(wanted: wanted, limit: request.candidateLimit)
        }
        report.entries = CollectionReport.Tally()
        report.objects = CollectionReport.Tally()
    }

    // MARK: Scanning

    /// Notes entries that were read, many at a time because this takes a lock; returns those that have to be deleted in any case.
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

    /// Notes an object, after all entries were read; returns its removal if no entry names it.
    ///
    /// If some entries could not be read, objects that no known entry names stay: they may be
    /// theirs. The others were named by entries that are deleted; should an unreadable one share a value with those,
    /// it has been evicted with them.
    mutating func noteObject(_ digest: Digest, _ status: FileStatus) -> Removal? {
        let size = AllocatedSize(bytes: status.allocatedSize)
        allocation.note(size, ofClass: pass.marks[digest].sizeClass)
        return noteObject(digest, inode: UInt32(truncatingIfNeeded: status.identity.inode), size)
    }

    /// Notes an object that was listed, and adds it to `unreferenced` if no entry names it; false if its size on disk is not known
    /// from the list.
    mutating func noteListedObject(_ file: StoreParts.File, _ unreferenced: inout [Removal]) -> Bool {
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

    /// Takes down that an object is there, but could not be looked at.
    mutating func noteUnreadableObject(_ digest: Digest) {
        pass.marks[digest].presence = .unreadable
    }

    /// Whether the object is gone for sure that entries name; all objects were listed.
    private func isMissing(_ content: Digest) -> Bool {
        pass.marks[content].isMissing && !pass.unreadableShards.contains(content.shard)
    }

    /// Those whose objects are gone; all objects were listed.
    func dangling(_ sightings: [Sighting]) -> [Removal] {
        sightings.filter { $0.entry.verdict == nil && isMissing($0.entry.content) }
            .map { Removal($0.entry, .dangling) }
    }

    /// Takes off the candidates those that name an object which is gone; false: of every content that entries name an
    /// object was found.
    mutating func dropMissing() -> Bool {
        guard pass.marks.values.contains(where: { $0.isMissing }) else { return false }
        var candidates = exchange(&pass.candidates, with: SweepCandidates())
        candidates.keep { !isMissing($0.content) }
        pass.candidates = candidates
        return true
    }

    // MARK: Limits

    /// The files that were seen and are not deleted.
    var occupancy: Occupancy {
        let bytes = report.entries.bytes + report.objects.bytes + partialBytes
        return Occupancy(bytes: bytes, overhead: pass.overhead, entries: report.entries.count)
    }

    /// The present excess over the limits, given the free space that was missing at the start.
    func excess(over limits: CacheLimits, _ shortfall: Int64?) -> Excess {
        var excess = limits.excess(of: occupancy)
        if let shortfall { excess.freeSpace = shortfall - report.removedInAll.bytes }
        return excess
    }

    // MARK: Deleting

    /// Notes the outcomes of deletions, as far as they were tried, of files that were counted as present.
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

    /// Whether the deletion was not reported by an earlier pass of a dry run, which has found the same.
    func isNews(_ removal: Removal) -> Bool { rehearsed == nil || removal.reason.isEviction }

    /// The object that a candidate which was deleted was the last to name.
    func unreferenced(at place: UInt32) -> Removal {
        let content = pass.candidates.entries[Int(place)].content
        let mark = pass.marks[content]
        return Removal(object: content, mark.allocatedSize, freed: mark.freed)
    }

    /// The report in order; passes find the same.
    var finishedReport: CollectionReport {
        var report = report
        report.removed = report.removed.filter { $0.value.count > 0 }
        report.unrecognised = Set(report.unrecognised).sorted()
        report.unreadable = Set(report.unreadable + stuckLeftovers).sorted()
        return report
    }
}
