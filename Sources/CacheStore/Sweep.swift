// SPDX-License-Identifier: Apache-2.0

package import Platform

/// One sweep: mark by reading all entries, delete what is of no use, plan, evict.
///
/// What is of no use goes as it is found: entries that have expired or are too old as they are read, and objects that
/// no entry names as they are listed. Of the other entries it keeps those that may have to go for want of room. What is
/// left of them is written down for the next trims, which take no scan (``evictListed(_:on:now:pace:)``).
///
/// Safe beside any number of readers, writers and other sweeps; a kill at any instant leaves the rest to
/// the next.
///
/// At full pace several threads read the shards and delete. They meet between the phases, of which each begins
/// after all of the one before: so every entry has been read before an object is looked at, and whatever was read
/// or deleted counts before anything is decided by it. Within a phase threads are at different files, each under
/// no stripe or one, held for a millisecond at most; to the others a sweep on several threads is one that takes
/// its steps in another order, and one hold for several deletions is several holds between which nobody asked.
package struct Sweep {
    let store: Store
    let request: SweepRequest
    let progress: (SweepProgress) -> Void
    /// What the calling thread works with, and the others with copies of.
    var worker: SweepWorker
    /// Whether the usage was corrected.
    private var hasCounted = false

    /// Sweeps `store` as it is at `now`.
    ///
    /// `progress` is called now and then.
    ///
    /// - Throws: ``StoreError/Code/busy`` where another sweep did not end within the request's patience, or does not get
    ///   on at all.
    /// - Complexity: O(*n*) in entries and objects: two system calls for each of the former and one for each of the
    ///   latter, of which small ones need none on ext4 (``SweepAllocation``); and two more for each that is deleted, three
    ///   where somebody has been at an entry meanwhile.
    ///
    ///   Memory: 20 to 40 bytes for each content (``SweepMarks``), half as much again while their table grows; and, where
    ///   limits are set, 88 for each candidate (``SweepCandidates``), of which there are as many as have to go and an
    ///   eighth more, at least 98,000 and at most 4 million. With a value for each entry that was, of the process as a
    ///   whole, 67 MB for a million of them with nothing to do, 89 with a limit that holds, and 143 MB when half of them
    ///   had to go; for 10 million it comes to 400 MB and 800 MB. A billion would take the marks in parts.
    package static func run(
        _ request: SweepRequest,
        on store: Store,
        now: Timestamp,
        progress: @escaping (SweepProgress) -> Void = { _ in }
    ) throws(StoreError) -> SweepReport {
        var wait = RoomWait(RoomTerms(patience: request.patience), in: store)
        while true {
            if let lock = try janitorLock(of: store) {
                return try run(request, on: store, now: now, under: lock, progress: progress)
            }
            guard try wait.pause() else {
                throw StoreError(
                    .busy,
                    "sweep",
                    path: janitorLockPath(store),
                    errno: .timedOut,
                    detail: wait.hindrance
                )
            }
        }
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
        guard let lock = try janitorLock(of: store) else { return nil }
        guard isDue(SweepRecord.read(from: lock.descriptor)) else { return nil }
        return try run(request, on: store, now: now, under: lock, progress: { _ in })
    }

    /// nil where somebody holds it.
    static func janitorLock(of store: Store) throws(StoreError) -> LockFile? {
        guard let lock = try tryJanitorLock(of: store) else { return nil }
        store.control.noteSweepHolder()
        return lock
    }

    /// Whether nobody sweeps or evicts at this moment.
    static func isFree(in store: Store) throws(StoreError) -> Bool {
        guard let lock = try tryJanitorLock(of: store) else { return false }
        lock.release()
        return true
    }

    private static func tryJanitorLock(of store: Store) throws(StoreError) -> LockFile? {
        try describing("lock", janitorLockPath(store)) { () throws(Errno) in
            try LockFile.acquire(StoreLayout.janitorLock, in: store.directory.locks, patience: .zero)
        }
    }

    private static func janitorLockPath(_ store: Store) -> String {
        "\(store.directory.path)/\(StoreLayout.locks)/\(StoreLayout.janitorLock)"
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
            progress: progress,
            worker: SweepWorker(request, on: store, now: now)
        )
        var record = SweepRecord(beginning: request, after: SweepRecord.read(from: lock.descriptor))
        if !request.isDryRun { record.write(to: lock.descriptor) }
        do throws(StoreError) {
            try sweep.run(under: lock)
        } catch {
            sweep.worker.state.value.withLock { $0.report.isComplete = false }
            record.end(sweep.finishedReport)
            if !request.isDryRun { record.write(to: lock.descriptor) }
            throw error
        }
        let report = sweep.finishedReport
        record.end(report)
        if !request.isDryRun {
            if let horizon = report.horizon { store.control.noteHorizon(horizon) }
            record.write(to: lock.descriptor)
            if report.isComplete { store.counters.add(.sweep) }
        }
        return report
    }

    private var finishedReport: SweepReport {
        var (report, evicted) = worker.state.value.withLock { ($0.finishedReport, $0.newestEvicted) }
        report.busy = worker.pacer.busy
        if let evicted { report.horizon = max(.zero, worker.begin.time - evicted) }
        return report
    }

    /// How long to wait for a stripe now; nil once the sweep's time is over.
    private mutating func stripePatience(after skipped: Int) -> Duration? {
        store.control.noteSweepStep()
        return worker.mayGoOn() ? worker.stripePatience(after: skipped) : nil
    }

    /// Passes over everything until the limits hold or nothing can be evicted: once, but where more has to go than
    /// there can be candidates.
    private mutating func run(under lock: borrowing LockFile) throws(StoreError) {
        var space = try freeSpaceGoal()
        guard try deleteLeftovers() else { return }
        var wanted = wantedByUsage(space?.shortfall)
        while true {
            let stamp = try fileSystemTime(by: lock)
            worker.objectStamp = stamp
            guard try scanAll(since: stamp, wanted: wanted) else { return }
            if request.expiredOnly { return }
            let (order, isCut) = worker.state.value.withLock {
                ($0.candidates.inOrder(), $0.candidates.isCut)
            }
            var position = 0
            while let plan = plan(order[position...], space?.shortfall) {
                try evict(order[position..<position + plan.count], plan, changedBefore: stamp)
                guard worker.mayGoOn() else { return }
                position += plan.count
                try space?.learn(from: store)
            }
            // The next pass finds those that were not taken in. Where all were spared it would find the same again.
            let evictions = worker.state.value.withLock { $0.deletions.evictions }
            if position < order.count || evictions == 0 || !isCut {
                return keepCandidates(order[position...], stamp)
            }
            wanted = wantedStill(space?.shortfall)
        }
    }

    /// Marks: reads all entries, then looks at all objects, and deletes what is of no use as it finds it; false: time ran
    /// out.
    ///
    /// The order matters: the stamp before the barrier, the barrier before the entries are read, and the
    /// entries before the objects are listed.
    ///
    /// See ``Store``.
    private mutating func scanAll(since stamp: Timestamp, wanted: Int) throws(StoreError) -> Bool {
        worker.state.value.withLock { [request] in $0.beginPass(request, wanted: wanted) }
        progress(SweepProgress(phase: .waiting, done: 0, total: StoreLayout.stripeCount))
        if store.directory.fileSystem.datesAttributes { worker.stamp = stamp }
        let objectStripes = store.objectStripes
        guard let skipped = try objectStripes.barrier(patience: { stripePatience(after: $0) }) else {
            return false
        }
        worker.state.value.withLock { $0.skipped[.objects, default: []].formUnion(skipped) }
        let replaced = store.control.replacedEntries
        let before = store.control.recordedUsage
        let filter = request.isDryRun ? nil : store.control.beginningOfFilter
        let hasReadEntries = try scan(.entries) { (worker, shard) throws(StoreError) in
            try worker.scanEntries(inShard: shard, noting: filter)
        }
        guard hasReadEntries else { return false }
        // What could not be listed may be missing in it.
        if !worker.state.value.withLock({ $0.hasUnreadableEntries }) { filter?.complete() }
        // At no particular time; here, so that of a sweep whose time runs out it takes none: in a debug build to
        // look at the whole table takes 65 ms.
        try clearDeadWriters()
        let between = store.control.recordedUsage
        let hasSeenObjects = try scan(.objects) { (worker, shard) throws(StoreError) in
            try worker.scanObjects(inShard: shard)
        }
        guard hasSeenObjects else { return false }
        if !hasCounted { recount(before, between, store.control.recordedUsage) }
        hasCounted = true
        addOverhead()
        if request.expiredOnly { return true }
        if !request.isDryRun { store.control.noteReplacement(0 &- replaced) }
        return try deleteDangling()
    }

    /// Takes a second look at the entries where an object is missing, to find those that name it; false: time ran out.
    private mutating func deleteDangling() throws(StoreError) -> Bool {
        guard worker.state.value.withLock({ $0.marks.hasMissing }) else { return true }
        // Whether they go or are spared, they are no candidates.
        worker.state.value.withLock { $0.dropMissing() }
        return try scan(.entries) { (worker, shard) throws(StoreError) in
            try worker.deleteDangling(inShard: shard)
        }
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
                store.control.noteSweepStep()
                sleepThread(for: .microseconds(500))
            }
        }
    }

    /// A tick of the kernel is 1 to 10 ms (CONFIG_HZ), but FAT's file times are two seconds apart.
    private static let longestTick: Duration = .seconds(3)

    // MARK: Threads

    /// Runs `task` for each shard of one tree; false: time ran out.
    private mutating func scan(
        _ tree: StoreScan.Tree,
        _ task: @escaping @Sendable (inout SweepWorker, Int) throws(StoreError) -> Bool
    ) throws(StoreError) -> Bool {
        let progress = progress
        let began = { (number: Int) in
            let done = tree == .entries ? number : 256 + number
            progress(SweepProgress(phase: .scanning, done: done, total: 512))
        }
        let shards = worker.scan.shards(tree)
        try share(shards, began: began) { (worker, number) throws(StoreError) in
            try task(&worker, shards[number])
        }
        return worker.state.value.withLock { $0.report.isComplete }
    }

    /// Shares out tasks, each about one of `shards`: among several threads at full pace, else to this one alone,
    /// which rests where it is due.
    ///
    /// `began` is called on this thread, with the number of tasks that were begun.
    mutating func share(
        _ shards: [Int],
        began: (Int) -> Void = { _ in },
        _ task: @escaping @Sendable (inout SweepWorker, Int) throws(StoreError) -> Bool
    ) throws(StoreError) {
        let threads = worker.pacer.isSparing ? 1 : SweepCrew.usualSize
        // The stripe: four shards share one.
        let lanes = shards.map { $0 / 4 }
        try SweepCrew.run(lanes, threads: threads, worker: &worker, progress: began, task: task)
    }
}
