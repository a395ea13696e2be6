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
    let progress: (SweepProgress) -> Void
    let scan: StoreScan
    var report = SweepReport()
    var pacer: SweepPacer
    var entries: [ScannedEntry] = []
    var objects: [ScannedObject] = []
    /// Entries that name an object, as far as they are not deleted.
    var references: [Digest: Int] = [:]
    /// Why the last entry that named an object was deleted.
    var freed: [Digest: SweepReason] = [:]
    /// Stripes that were not to be had once: what they guard is left alone, so that the wait for somebody
    /// who is stopped is paid once and not for each thing that he keeps.
    var skippedObjects: Set<Int> = []
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
        let lock = try janitorLock(of: store, patience: request.patience)
        guard let lock else {
            let path = "\(store.directory.path)/\(StoreLayout.locks)/\(StoreLayout.janitorLock)"
            throw StoreError(.busy, "sweep", path: path, errno: .timedOut)
        }
        return try run(request, on: store, now: now, under: lock, progress: progress)
    }

    /// Sweeps where no other process does, and only if `isDue` says so of the last sweep, asked when no other
    /// can begin; nil: it was not to be.
    ///
    /// Three system calls where another process sweeps.
    package static func runIfDue(
        _ request: SweepRequest,
        on store: Store,
        now: Timestamp,
        isDue: (SweepRecord?) -> Bool
    ) throws(StoreError) -> SweepReport? {
        guard let lock = try janitorLock(of: store, patience: .zero) else { return nil }
        guard isDue(SweepRecord.read(from: lock.descriptor)) else { return nil }
        return try run(request, on: store, now: now, under: lock, progress: { _ in })
    }

    private static func janitorLock(
        of store: Store,
        patience: Duration
    ) throws(StoreError) -> LockFile? {
        let path = "\(store.directory.path)/\(StoreLayout.locks)/\(StoreLayout.janitorLock)"
        return try describing("lock", path) { () throws(Errno) in
            try LockFile.acquire(StoreLayout.janitorLock, in: store.directory.locks, patience: patience)
        }
    }

    private static func run(
        _ request: SweepRequest,
        on store: Store,
        now: Timestamp,
        under lock: borrowing LockFile,
        progress: @escaping (SweepProgress) -> Void
    ) throws(StoreError) -> SweepReport {
        var sweep = Sweep(
            store: store,
            request: request,
            begin: (now, ContinuousClock.now),
            progress: progress,
            scan: StoreScan(of: store),
            pacer: SweepPacer(request.pace)
        )
        var record = SweepRecord(beginning: request, after: SweepRecord.read(from: lock.descriptor))
        if !request.isDryRun { record.write(to: lock.descriptor) }
        do throws(StoreError) {
            try sweep.run(under: lock)
        } catch {
            sweep.report.isComplete = false
            record.end(sweep.finishedReport)
            if !request.isDryRun { record.write(to: lock.descriptor) }
            throw error
        }
        record.end(sweep.finishedReport)
        if !request.isDryRun {
            record.write(to: lock.descriptor)
            if sweep.report.isComplete { store.counters.add(.sweep) }
        }
        return sweep.finishedReport
    }

    private var finishedReport: SweepReport {
        var report = report
        report.busy = pacer.busy
        return report
    }

    /// Whether to go on: takes a rest where one is due, and ends the sweep where its time is over.
    ///
    /// Called between single things, while no stripe is held.
    mutating func mayGoOn() -> Bool {
        if pacer.mayGoOn() { return true }
        report.isComplete = false
        return false
    }

    /// How long to wait for a stripe now; nil once the sweep's time is over.
    private mutating func stripePatience() -> Duration? {
        mayGoOn() ? min(Self.stripePatience, pacer.rest) : nil
    }

    /// The present by the caller's clock: a sweep may wait and scan for minutes, and what is used meanwhile
    /// must not look as if it were used in the future.
    var now: Timestamp { begin.time + (ContinuousClock.now - begin.instant) }

    /// The order matters: the stamp before the barrier, the barrier before the entries are read, and the
    /// entries before the objects are listed.
    ///
    /// See ``Store``.
    private mutating func run(under lock: borrowing LockFile) throws(StoreError) {
        guard try deleteLeftovers() else { return }
        progress(SweepProgress(phase: .waiting, done: 0, total: StoreLayout.stripeCount))
        let clock = ClockWitness()
        let stamp = try fileSystemTime(by: lock)
        let objectStripes = store.objectStripes
        let skipped = try objectStripes.barrier { stripePatience() }
        guard let skipped else { return }
        skippedObjects = skipped
        defer {
            report.skippedStripes =
                skippedObjects.sorted().map { "\(StoreLayout.lockName(.object, $0))" }
                + skippedEntries.sorted().map { "\(StoreLayout.lockName(.entry, $0))" }
        }
        try clearDeadWriters()
        let before = store.usage
        guard try scanEntries() else { return }
        let between = store.usage
        guard try scanObjects() else { return }
        recount(before, between, store.usage)
        // A clock that was put back meanwhile has dated later touches before the stamp.
        let safeStamp = clock.isSteady ? stamp : nil
        if request.expiredOnly {
            try deleteObjects(changedBefore: safeStamp)
            return
        }
        let plan = SweepPlan(entries: entries, objects: objects, limits: request.limits, now: now)
        // Those that have expired were seen to by the scan.
        let worthless: Set<SweepReason> = [.dangling, .corrupt]
        try deleteEntries(plan.removals.filter { worthless.contains($0.reason) })
        try deleteObjects(changedBefore: safeStamp)
        try deleteEntries(plan.removals.filter { !worthless.contains($0.reason) && $0.reason != .expired })
        try deleteObjects(changedBefore: safeStamp)
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

    // MARK: Mark

    /// Reads all entries, and deletes those that have expired as it finds them: of a sweep whose time runs
    /// out, that much is done.
    ///
    /// False: time ran out.
    private mutating func scanEntries() throws(StoreError) -> Bool {
        let filter = request.isDryRun ? nil : store.control.beginningOfFilter
        for shard in 0..<256 {
            progress(SweepProgress(phase: .scanning, done: shard, total: 512))
            let listing = try scan.digests(.entries, shard: shard)
            report.unrecognised += listing.unrecognised
            for key in listing.digests {
                filter?.insert(key)
                guard mayGoOn() else { return false }
                guard let entry = try scan.scannedEntry(key, now: now) else { continue }
                entries.append(entry)
                report.entries.add(entry.allocatedSize)
                if let content = entry.content { references[content, default: 0] += 1 }
                if entry.isExpired { try remove(entry, .expired) }
            }
        }
        filter?.complete()
        return true
    }

    /// False: time ran out.
    private mutating func scanObjects() throws(StoreError) -> Bool {
        for shard in 0..<256 {
            progress(SweepProgress(phase: .scanning, done: 256 + shard, total: 512))
            let listing = try scan.digests(.objects, shard: shard)
            report.unrecognised += listing.unrecognised
            for digest in listing.digests {
                guard mayGoOn() else { return false }
                guard let object = try scan.object(digest) else { continue }
                objects.append(object)
                report.objects.add(object.allocatedSize)
            }
        }
        return true
    }
}
