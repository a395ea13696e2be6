// SPDX-License-Identifier: Apache-2.0

package import Platform

/// One sweep: mark by reading all entries, plan, delete.
///
/// Safe beside any number of readers, writers and other sweeps; a kill at any instant leaves the rest to
/// the next. Holds each stripe only while it deletes one thing.
package struct Sweep {
    /// How long to wait for one stripe.
    ///
    /// Writers hold them for microseconds: whoever is not gone after a second is stopped, and everything else
    /// must not wait for him.
    static let stripePatience: Duration = .seconds(1)

    let store: Store
    let request: SweepRequest
    /// The time when the sweep was asked for, by the caller's clock, and by one that runs steadily.
    private let begin: (time: Timestamp, instant: ContinuousClock.Instant)
    private let progress: (SweepProgress) -> Void
    private let scan: StoreScan
    var report = SweepReport()
    private var entries: [ScannedEntry] = []
    private var objects: [ScannedObject] = []
    /// Entries that name an object, as far as they are not deleted.
    private var references: [Digest: Int] = [:]
    /// Why the last entry that named an object was deleted.
    private var freed: [Digest: SweepReason] = [:]
    /// Stripes that were not to be had once: what they guard is left alone, so that the wait for somebody
    /// who is stopped is paid once and not for each thing that he keeps.
    private var skippedObjects: Set<Int> = []
    var skippedEntries: Set<Int> = []

    /// Sweeps `store` as it is at `now`.
    ///
    /// `progress` is called now and then.
    ///
    /// - Throws: ``StoreError/Code/busy`` where another sweep did not end within the request's patience.
    /// - Complexity: O(*n*) in entries and objects: two system calls for each of the former and one for
    ///   each of the latter, five for each that is deleted. About 570 bytes of memory for an
    ///   entry with a value of its own (measured with 55,000 of them).
    package static func run(
        _ request: SweepRequest,
        on store: Store,
        now: Timestamp,
        progress: @escaping (SweepProgress) -> Void = { _ in }
    ) throws(StoreError) -> SweepReport {
        let begin = (now, ContinuousClock.now)
        let path = "\(store.directory.path)/\(StoreLayout.locks)/\(StoreLayout.janitorLock)"
        let lock = try describing("lock", path) { () throws(Errno) in
            try LockFile.acquire(
                StoreLayout.janitorLock,
                in: store.directory.locks,
                patience: request.patience
            )
        }
        guard let lock else { throw StoreError(.busy, "sweep", path: path, errno: .timedOut) }
        var sweep = Sweep(
            store: store,
            request: request,
            begin: begin,
            progress: progress,
            scan: StoreScan(of: store)
        )
        try sweep.run(under: lock)
        if !request.isDryRun { store.counters.add(.sweep) }
        return sweep.report
    }

    /// The present by the caller's clock: a sweep may wait and scan for minutes, and what is used meanwhile
    /// must not look as if it were used in the future.
    private var now: Timestamp { begin.time + (ContinuousClock.now - begin.instant) }

    /// The order matters: the stamp before the barrier, the barrier before the entries are read, and the
    /// entries before the objects are listed.
    ///
    /// See ``Store``.
    private mutating func run(under lock: borrowing LockFile) throws(StoreError) {
        try deleteStaleTemporaries()
        progress(SweepProgress(phase: .waiting, done: 0, total: StoreLayout.stripeCount))
        let clock = ClockWitness()
        let stamp = try fileSystemTime(by: lock)
        skippedObjects = try store.objectStripes.barrier(patience: Self.stripePatience)
        defer {
            report.skippedStripes =
                skippedObjects.sorted().map { "\(StoreLayout.lockName(.object, $0))" }
                + skippedEntries.sorted().map { "\(StoreLayout.lockName(.entry, $0))" }
        }
        try clearDeadWriters()
        var readings = [store.usage]
        try scanEntries()
        readings.append(store.usage)
        try scanObjects()
        recount(readings + [store.usage])
        var limits = SweepLimits()
        if !request.expiredOnly { limits = request.limits }
        let plan = SweepPlan(entries: entries, objects: objects, limits: limits, now: now)
        // A clock that was put back meanwhile has dated later touches before the stamp.
        let isClockSteady = clock.isSteady
        try deleteEntries(plan.removals.filter { !request.expiredOnly || $0.reason == .expired })
        guard isClockSteady else { return }
        try deleteObjects(changedBefore: stamp)
    }

    /// The present as the file system dates changes, taken from a file of ours: kernel times lag the
    /// clock by up to a tick.
    ///
    /// Waits for the tick to change, so that everything that was done before the sweep began is older
    /// than the stamp, and one sweep leaves nothing of it.
    private func fileSystemTime(by lock: borrowing LockFile) throws(StoreError) -> Timestamp {
        try describing("take a time stamp", store.directory.path) { () throws(Errno) in
            let start = try lock.descriptor.touched()
            let deadline = ContinuousClock.now + Self.longestTick
            while true {
                let stamp = try lock.descriptor.touched()
                // Past the deadline the clock must have been put back; an early stamp spares too much,
                // which is safe.
                if stamp > start || ContinuousClock.now > deadline { return stamp }
                sleepThread(for: .microseconds(500))
            }
        }
    }

    /// A tick of the kernel is 1 to 10 ms (CONFIG_HZ), but FAT's file times are two seconds apart.
    private static let longestTick: Duration = .seconds(3)

    // MARK: Leftovers

    /// A temporary file is locked as long as its process lives.
    private mutating func deleteStaleTemporaries() throws(StoreError) {
        let place = "\(store.directory.path)/\(StoreLayout.temporaries)"
        let store = store
        let isDryRun = request.isDryRun
        let tallies = try describing("clean", place) { () throws(Errno) -> (SweepTally, [UnrecognisedFile]) in
            let temporaries = try TemporaryArea(of: store.directory)
            var tally = SweepTally()
            var unrecognised: [UnrecognisedFile] = []
            for name in try temporaries.directory.names() {
                guard let path = TemporaryFile.path(ofOwn: name) else {
                    unrecognised.append(UnrecognisedFile(path: "\(StoreLayout.temporaries)/\(name)"))
                    continue
                }
                do throws(Errno) {
                    let size = try ifExists { () throws(Errno) in
                        try temporaries.directory.deleteUnlocked(path, isDryRun: isDryRun)
                    }
                    if let size, let size { tally.add(size) }
                } catch {
                    // A link, a socket, or a file that this user may not read: none that we have made.
                    guard error.tellsOfNoFile || error == .accessDenied else { throw error }
                    unrecognised.append(UnrecognisedFile(path: "\(StoreLayout.temporaries)/\(name)"))
                }
            }
            return (tally, unrecognised)
        }
        if tallies.0.count > 0 { report.removed[.staleTemporary] = tallies.0 }
        if !isDryRun { store.counters.add(.sweptTemporary, tallies.0.count) }
        report.unrecognised += tallies.1
    }

    // MARK: Mark

    private mutating func scanEntries() throws(StoreError) {
        for shard in 0..<256 {
            progress(SweepProgress(phase: .scanning, done: shard, total: 512))
            let listing = try scan.digests(.entries, shard: shard)
            report.unrecognised += listing.unrecognised
            for key in listing.digests {
                guard let entry = try scan.scannedEntry(key, now: now) else { continue }
                entries.append(entry)
                report.entries.add(entry.allocatedSize)
                if let content = entry.content { references[content, default: 0] += 1 }
            }
        }
    }

    private mutating func scanObjects() throws(StoreError) {
        for shard in 0..<256 {
            progress(SweepProgress(phase: .scanning, done: 256 + shard, total: 512))
            let listing = try scan.digests(.objects, shard: shard)
            report.unrecognised += listing.unrecognised
            for digest in listing.digests {
                guard let object = try scan.object(digest) else { continue }
                objects.append(object)
                report.objects.add(object.allocatedSize)
            }
        }
    }

    // MARK: Delete

    private mutating func deleteEntries(_ removals: [SweepPlan.Removal]) throws(StoreError) {
        for (done, removal) in removals.enumerated() {
            if done % 256 == 0 {
                progress(SweepProgress(phase: .deleting, done: done, total: removals.count))
            }
            let entry = entries[removal.index]
            if skippedEntries.contains(entry.key.stripe) { continue }
            guard try delete(entry, removal.reason) else {
                if !skippedEntries.contains(entry.key.stripe) { report.spared += 1 }
                continue
            }
            report.removed[removal.reason, default: SweepTally()].add(entry.allocatedSize)
            noteRemoval(removal.reason, bytes: entry.allocatedSize, entries: 1)
            report.entries.subtract(entry.allocatedSize)
            guard let content = entry.content, let count = references[content] else { continue }
            references[content] = count - 1
            if count == 1 { freed[content] = removal.reason }
        }
    }

    /// Decides again under the lock that keeps writers away; false: the entry stays as it is.
    private mutating func delete(_ entry: ScannedEntry, _ reason: SweepReason) throws(StoreError) -> Bool {
        do throws(StoreError) {
            return try store.entryStripes.withLock(
                .exclusive,
                of: entry.key,
                patience: Self.stripePatience
            ) { () throws(StoreError) in
                guard let present = try scan.scannedEntry(entry.key, now: now),
                    present.witness == entry.witness
                else { return false }
                if reason == .dangling, let content = entry.content, try scan.object(content) != nil {
                    return false
                }
                return request.isDryRun ? true : try store.entries.delete(entry.key)
            }
        } catch {
            guard error.code == .busy else { throw error }
            skippedEntries.insert(entry.key.stripe)
            return false
        }
    }

    private mutating func deleteObjects(
        changedBefore stamp: Timestamp
    ) throws(StoreError) {
        let unreferenced = objects.filter { object in
            references[object.digest, default: 0] == 0
                && (!request.expiredOnly || freed[object.digest] != nil)
        }
        for (done, object) in unreferenced.enumerated() {
            if done % 256 == 0 {
                progress(SweepProgress(phase: .deleting, done: done, total: unreferenced.count))
            }
            if skippedObjects.contains(object.digest.stripe) { continue }
            guard try delete(object, changedBefore: stamp) else {
                if !skippedObjects.contains(object.digest.stripe) { report.spared += 1 }
                continue
            }
            report.objects.subtract(object.allocatedSize)
            if let reason = freed[object.digest] {
                report.removed[reason]?.bytes += object.allocatedSize
                noteFreedObject(bytes: object.allocatedSize)
            } else {
                report.removed[.orphan, default: SweepTally()].add(object.allocatedSize)
                noteRemoval(.orphan, bytes: object.allocatedSize, entries: 0)
            }
        }
    }

    /// Looks again under the lock that keeps writers away: who wanted the object since the stamp has
    /// touched it, and his entry may not have been seen.
    private mutating func delete(
        _ object: ScannedObject,
        changedBefore stamp: Timestamp
    ) throws(StoreError) -> Bool {
        do throws(StoreError) {
            return try store.objectStripes.withLock(
                .exclusive,
                of: object.digest,
                patience: Self.stripePatience
            ) { () throws(StoreError) in
                guard let present = try scan.object(object.digest), present.changed == object.changed,
                    present.changed < stamp
                else { return false }
                return request.isDryRun ? true : try store.objects.delete(object.digest)
            }
        } catch {
            guard error.code == .busy else { throw error }
            skippedObjects.insert(object.digest.stripe)
            return false
        }
    }
}

extension SweepTally {
    fileprivate mutating func subtract(_ size: Int64) {
        count -= 1
        bytes -= size
    }
}

extension Directory {
    /// Deletes a file that nobody holds locked; its bytes on disk, or nil where somebody does.
    fileprivate func deleteUnlocked(_ path: RelativePath, isDryRun: Bool) throws(Errno) -> Int64? {
        let file = try open(path, [.readOnly, .nonBlocking])
        guard try file.tryLock(.exclusive) else { return nil }
        let status = try file.status()
        guard status.kind == .regular, try self.status(of: path).identity == status.identity else {
            return nil
        }
        if !isDryRun { try unlink(path) }
        return status.allocatedSize
    }
}
