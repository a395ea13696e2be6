// SPDX-License-Identifier: Apache-2.0

import Platform

/// Something that a sweep is to delete.
protocol SweepDeletion: Sendable {
    /// What its file is named by.
    var digest: Digest { get }
}

/// What a sweep has seen and done so far, which its threads share.
struct SweepState {
    /// Without what only ``finishedReport`` has.
    var report = SweepReport()
    var removed = SweepTallies()
    var marks = SweepMarks()
    var candidates = SweepCandidates()
    /// Places of candidates that were deleted as the last to name their objects, which are to go too.
    var freed: [UInt32] = []
    private var allocation: SweepAllocation
    /// Shards of the objects that could not be listed: nothing is known of what is in them.
    var unreadableShards: Set<UInt8> = []
    /// Whether an entry may name objects without that being known.
    var hasUnreadableEntries = false
    /// Stripes that were not to be had once: what they guard is left alone, so that the wait for somebody
    /// who is stopped is paid once and not for each thing that he keeps.
    var skipped: [StoreScan.Tree: Set<Int>] = [:]
    /// Bytes on disk beside entries and objects.
    var overhead: Int64 = 0
    /// What this pass has deleted: entries, of those such as went for want of room, and bytes of objects.
    private(set) var deletions = (entries: 0, evictions: 0, objectBytes: Int64(0))
    /// The last use of the most recently used entry that was evicted for want of room.
    private(set) var newestEvicted: Timestamp?
    private let expiredOnly: Bool
    /// In a dry run that passes over everything again, where the pass before has come to: up to there entries count as
    /// evicted, and what goes for other reasons has been counted.
    private var rehearsed: EvictionOrder?

    /// - Parameter blockSize: in which the file system gives out space; nil where a file's length does not tell what
    ///   it takes.
    init(blockSize: Int64? = nil, expiredOnly: Bool = false) {
        allocation = SweepAllocation(blockSize: blockSize)
        self.expiredOnly = expiredOnly
    }

    /// An entry to be deleted, as it was seen, and why.
    struct Removal: SweepDeletion {
        let entry: SeenEntry
        let reason: SweepReason
        /// Its place among the candidates; nil where it is none of them.
        var place: UInt32?

        var digest: Digest { entry.key }
    }

    /// An object to be deleted, as it was seen.
    struct Unreferenced: SweepDeletion {
        let digest: Digest
        let allocatedSize: AllocatedSize
        /// The lower half of its inode number.
        var inode: UInt32 = 0
        /// Why the last entry that named it was deleted; nil where none was.
        let freed: SweepReason?
    }

    /// How a deletion ended.
    enum Outcome: Sendable {
        case deleted
        /// Somebody has used or changed it since it was seen.
        case spared
        /// It is guarded by a stripe that was not to be had.
        case skipped
        /// The kernel would not have it looked at or deleted.
        case refused(path: String)

        var isDeletion: Bool {
            if case .deleted = self { true } else { false }
        }
    }

    /// An entry that was read.
    struct Sighting {
        let entry: SeenEntry
        /// The length of what it names, as the record states it.
        var length = 0
    }

    /// Forgets what is there, but not what was done, before everything is looked at once more.
    mutating func beginPass(_ request: SweepRequest, wanted: Int) {
        if request.isDryRun, candidates.isCut { rehearsed = candidates.end }
        candidates = SweepCandidates()
        marks = SweepMarks()
        // Only now, so that there is one of each at a time.
        if !expiredOnly, request.limits.areBounding {
            candidates = SweepCandidates(wanted: wanted, limit: request.candidateLimit)
        }
        freed = []
        report.entries = SweepTally()
        report.objects = SweepTally()
        unreadableShards = []
        hasUnreadableEntries = false
        overhead = 0
        deletions = (0, 0, 0)
    }

    // MARK: Scanning

    /// Takes down what was read, all at once as this is done under a lock, and tells which of it is to go whatever else
    /// there is.
    mutating func note(_ sightings: [Sighting]) -> [Removal] {
        var removals: [Removal] = []
        for sighting in sightings {
            let entry = sighting.entry
            if let rehearsed, entry.verdict == .none, entry.order < rehearsed { continue }
            if entry.verdict != .corrupt {
                let sizeClass = allocation.classNumber(ofLength: sighting.length)
                marks[marks.slot(of: entry.content)].noteReference(sizeClass: sizeClass)
            }
            report.entries.add(entry.allocatedSize.bytes)
            if let reason = reason(entry.verdict) {
                removals.append(Removal(entry: entry, reason: reason))
            } else if entry.verdict == .none {
                candidates.add(entry)
            }
        }
        return removals
    }

    private func reason(_ verdict: SeenEntry.Verdict) -> SweepReason? {
        switch verdict {
        case .none: nil
        case .expired: .expired
        case .corrupt: expiredOnly ? nil : .corrupt
        case .age: expiredOnly ? nil : .age
        case .idle: expiredOnly ? nil : .idle
        }
    }

    /// Takes down an object that was found, after all entries were read; what is to be deleted, if no entry names it.
    ///
    /// While there are entries that could not be read those stay which no entry is known to have named: they may be
    /// theirs. The others were named by entries that are deleted; should an unreadable one share a value with those,
    /// it has been evicted with them.
    mutating func noteObject(_ digest: Digest, _ status: FileStatus) -> Unreferenced? {
        let slot = marks.slot(of: digest)
        let size = AllocatedSize(bytes: status.allocatedSize)
        allocation.note(size, ofClass: marks[slot].sizeClass)
        let inode = UInt32(truncatingIfNeeded: status.identity.inode)
        return noteObject(digest, at: slot, inode: inode, size)
    }

    /// How an object that was only listed was taken down.
    enum Listed {
        /// What it takes on disk is not known: ask it.
        case unknown
        /// With what is to be deleted, if no entry names it.
        case noted(Unreferenced?)
    }

    /// Takes down an object that was listed, if what it takes on disk is known.
    mutating func noteListedObject(_ file: StoreScan.File) -> Listed {
        guard file.isRegular else { return .unknown }
        let slot = marks.slot(of: file.digest)
        guard let size = allocation.size(ofClass: marks[slot].sizeClass) else { return .unknown }
        return .noted(noteObject(file.digest, at: slot, inode: file.inode, size))
    }

    private mutating func noteObject(
        _ digest: Digest,
        at slot: Int,
        inode: UInt32,
        _ size: AllocatedSize
    ) -> Unreferenced? {
        marks[slot].presence = .present
        marks[slot].allocatedSize = size
        report.objects.add(size.bytes)
        guard marks[slot].references == 0 else { return nil }
        let freed = marks[slot].freed
        if freed == nil {
            if expiredOnly { return nil }
            if hasUnreadableEntries {
                report.spared += 1
                return nil
            }
        }
        return Unreferenced(digest: digest, allocatedSize: size, inode: inode, freed: freed)
    }

    /// Takes down that an object is there, but could not be looked at.
    mutating func noteUnreadableObject(_ digest: Digest) {
        marks[marks.slot(of: digest)].presence = .unreadable
    }

    /// Takes down that a file or a shard could not be looked at.
    mutating func noteUnreadable(_ path: String) {
        report.unreadable.append(path)
    }

    /// Whether the object is gone for sure that entries name; all objects were listed.
    func isMissing(_ content: Digest) -> Bool {
        guard let mark = marks.mark(of: content), !unreadableShards.contains(content.byte(0)) else {
            return false
        }
        return mark.references > 0 && mark.presence == .absent
    }

    /// Those whose objects are gone; all objects were listed.
    func dangling(_ sightings: [Sighting]) -> [Removal] {
        var removals: [Removal] = []
        for sighting in sightings where sighting.entry.verdict == .none && isMissing(sighting.entry.content) {
            removals.append(Removal(entry: sighting.entry, reason: .dangling))
        }
        return removals
    }

    /// Takes off the candidates those that name an object which is gone.
    mutating func dropMissing() {
        var candidates = SweepCandidates()
        swap(&candidates, &self.candidates)
        candidates.keep { !isMissing($0.content) }
        swap(&candidates, &self.candidates)
    }

    // MARK: Deleting

    /// Takes down how the deletion of an entry ended that was counted as one that stays.
    mutating func note(_ removal: Removal, _ outcome: Outcome) {
        let entry = removal.entry
        let size = entry.allocatedSize.bytes
        guard count(outcome) else { return }
        if isCounted(removal.reason) { removed[removal.reason].add(size) }
        report.entries.subtract(size)
        deletions.entries += 1
        if removal.reason.isEviction {
            deletions.evictions += 1
            newestEvicted = max(newestEvicted ?? .distantPast, entry.lastUse)
        }
        guard entry.verdict != .corrupt else { return }
        let slot = marks.slot(of: entry.content)
        if marks[slot].noteRemoval(removal.reason), marks[slot].presence == .present,
            let place = removal.place
        {
            freed.append(place)
        }
    }

    /// The object that a candidate which was deleted was the last to name.
    func unreferenced(at place: UInt32) -> Unreferenced {
        let entry = candidates.entries[Int(place)]
        let mark = marks.mark(of: entry.content)
        return Unreferenced(
            digest: entry.content,
            allocatedSize: mark?.allocatedSize ?? AllocatedSize(bytes: 0),
            freed: mark?.freed
        )
    }

    /// Takes down how the deletion of an object ended.
    mutating func note(_ object: Unreferenced, _ outcome: Outcome) {
        let size = object.allocatedSize.bytes
        guard count(outcome) else { return }
        report.objects.subtract(size)
        deletions.objectBytes += size
        let reason = object.freed ?? .orphan
        guard isCounted(reason) else { return }
        if object.freed == nil { removed[reason].count += 1 }
        removed[reason].bytes += size
    }

    private func isCounted(_ reason: SweepReason) -> Bool {
        rehearsed == nil || reason.isEviction
    }

    /// The report with what belongs to the sweep as a whole.
    var finishedReport: SweepReport {
        var report = report
        report.removed = removed.byReason
        // Passes find the same.
        report.unrecognised = Set(report.unrecognised.map(\.path)).sorted().map(UnrecognisedFile.init)
        report.unreadable = Set(report.unreadable).sorted()
        report.skippedStripes =
            skipped[.objects, default: []].sorted().map { "\(StoreLayout.lockName(.object, $0))" }
            + skipped[.entries, default: []].sorted().map { "\(StoreLayout.lockName(.entry, $0))" }
        return report
    }

    /// Whether it was deleted.
    private mutating func count(_ outcome: Outcome) -> Bool {
        switch outcome {
        case .deleted: return true
        case .spared: report.spared += 1
        case .skipped: break
        case .refused(let path): noteUnreadable(path)
        }
        return false
    }
}
