// SPDX-License-Identifier: Apache-2.0

import Platform

/// Something that a sweep is to delete.
protocol SweepDeletion: Sendable {
    /// What its file is named by.
    var digest: Digest { get }
    /// The lower half of its inode number.
    var inode: UInt32 { get }
}

/// What a sweep has seen and done so far, which its threads share.
struct SweepState {
    /// Without what only ``finishedReport`` has.
    var report = SweepReport()
    var removed = SweepTallies()
    /// Entries but those that have expired.
    var entries = Segments<SeenEntry>()
    var contents = SweepContents()
    private var allocation: SweepAllocation
    /// Whether an entry may name objects without that being known.
    var hasUnreadableEntries = false
    /// Stripes that were not to be had once: what they guard is left alone, so that the wait for somebody
    /// who is stopped is paid once and not for each thing that he keeps.
    var skipped: [StoreScan.Tree: Set<Int>] = [:]

    /// - Parameter blockSize: in which the file system gives out space; nil where a file's length does not tell what
    ///   it takes.
    init(blockSize: Int64? = nil) {
        allocation = SweepAllocation(blockSize: blockSize)
    }

    /// An entry to be deleted, as it was seen, and why.
    struct Removal: SweepDeletion {
        let entry: SeenEntry
        let reason: SweepReason

        var digest: Digest { entry.key }
        var inode: UInt32 { entry.inode }
    }

    /// An object to be deleted, as it was seen, and its place among the contents.
    struct Unreferenced: SweepDeletion {
        let content: SeenContent
        let place: UInt32

        var digest: Digest { content.digest }
        var inode: UInt32 { content.inode }
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

    /// An entry that was read, with what it names.
    struct Sighting {
        let entry: SeenEntry
        let content: Digest?
        /// As the record states it.
        var length = 0
    }

    /// Takes down what was read, all at once as this is done under a lock, and tells which of it has expired.
    mutating func note(_ sightings: [Sighting]) -> [Removal] {
        var expired: [Removal] = []
        for sighting in sightings {
            var entry = sighting.entry
            if let content = sighting.content {
                entry.content = contents.place(of: content)
                let sizeClass = allocation.classNumber(ofLength: sighting.length)
                contents[entry.content].noteReference(sizeClass: sizeClass)
            }
            report.entries.add(entry.allocatedSize.bytes)
            if entry.verdict == .expired {
                expired.append(Removal(entry: entry, reason: .expired))
            } else {
                entries.append(entry)
            }
        }
        return expired
    }

    /// Takes down an object that was found.
    mutating func noteObject(_ digest: Digest, _ status: FileStatus) {
        let place = contents.place(of: digest)
        let size = AllocatedSize(bytes: status.allocatedSize)
        allocation.note(size, ofClass: contents[place].sizeClass)
        noteObject(at: place, inode: UInt32(truncatingIfNeeded: status.identity.inode), size)
    }

    /// Takes down an object that was listed, if what it takes on disk is known; false: ask it.
    mutating func noteListedObject(_ file: StoreScan.File) -> Bool {
        guard file.isRegular else { return false }
        let place = contents.place(of: file.digest)
        guard let size = allocation.size(ofClass: contents[place].sizeClass) else { return false }
        noteObject(at: place, inode: file.inode, size)
        return true
    }

    private mutating func noteObject(at place: UInt32, inode: UInt32, _ size: AllocatedSize) {
        contents[place].inode = inode
        contents[place].presence = .present
        contents[place].allocatedSize = size
        report.objects.add(size.bytes)
    }

    /// Takes down that a file or a shard could not be looked at.
    mutating func noteUnreadable(_ path: String) {
        report.unreadable.append(path)
    }

    /// Takes down how the deletion of an entry ended that was counted as one that stays.
    mutating func note(_ removal: Removal, _ outcome: Outcome) {
        let size = removal.entry.allocatedSize.bytes
        guard count(outcome) else { return }
        removed[removal.reason].add(size)
        report.entries.subtract(size)
        guard removal.entry.verdict != .corrupt else { return }
        let place = removal.entry.content
        contents[place].references -= 1
        if contents[place].references == 0 { contents[place].freed = removal.reason }
    }

    /// The places of the objects that no entry names by now, each given out once.
    ///
    /// While there are entries that could not be read those stay which no entry is known to have named: they may be
    /// theirs. The others were named by entries that are deleted; should an unreadable one share a value with those,
    /// it has been evicted with them.
    mutating func takeUnreferenced(_ request: SweepRequest) -> [UInt32] {
        var places: [UInt32] = []
        for place in 0..<UInt32(contents.count) {
            let content = contents[place]
            guard content.presence == .present, content.references == 0, !content.isDecided,
                content.freed != nil || !request.expiredOnly
            else { continue }
            contents[place].isDecided = true
            if content.freed == nil && hasUnreadableEntries {
                report.spared += 1
            } else {
                places.append(place)
            }
        }
        return places
    }

    /// Takes down how the deletion of an object ended.
    mutating func note(_ object: Unreferenced, _ outcome: Outcome) {
        let size = object.content.allocatedSize.bytes
        guard count(outcome) else { return }
        contents[object.place].presence = .absent
        report.objects.subtract(size)
        if let reason = object.content.freed {
            removed[reason].bytes += size
        } else {
            removed[.orphan].add(size)
        }
    }

    /// The report with what belongs to the sweep as a whole.
    var finishedReport: SweepReport {
        var report = report
        report.removed = removed.byReason
        report.unrecognised.sort { $0.path < $1.path }
        report.unreadable.sort()
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

extension SweepTally {
    fileprivate mutating func subtract(_ size: Int64) {
        count -= 1
        bytes -= size
    }
}
