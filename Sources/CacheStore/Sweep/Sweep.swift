// SPDX-License-Identifier: Apache-2.0

package import Platform

/// One sweep: reads all entries and objects, deletes expired entries and orphans, and evicts entries until the limits
/// hold.
///
/// A sweep deletes entries that have expired or exceed an age limit while it reads the entries, and orphans while it
/// lists the objects. It keeps the other entries that may have to be evicted as candidates. It writes the candidates that
/// remain after the evictions to a list. Later evictions take entries from that list and need no scan
/// (``ListedEviction``).
///
/// A sweep is safe while any number of readers, writers and other sweeps run. If its process is killed at any moment, the
/// next sweep does the rest.
///
/// At full pace several threads read the shards and delete files, each with a copy of this value. A step begins when all
/// threads have finished the previous step: all entries have been read before the first object is checked, and all files
/// that were read or deleted are counted before the sweep decides what to evict. Within a step, the threads work on
/// different files. Each thread holds at most one stripe at a time, for a millisecond. To other processes this is the
/// same as a sweep with one thread that takes the steps in another order.
package struct Sweep: Sendable {
    let store: Store
    let request: SweepRequest
    /// The time at which the sweep was requested, by the caller's clock and by a monotonic clock.
    let begin: (time: Timestamp, instant: ContinuousClock.Instant)
    /// The results so far, which the threads share; the lock is not held during system calls.
    let state: Locked<SweepState>.Box
    var deletions: Deletions
    var stamp: SweepStamp
    var pacer: SweepPacer
    /// The rules that were in force when the sweep began.
    var rules = RulesInForce.nothing

    init(
        _ request: SweepRequest,
        on store: Store,
        now: Timestamp,
        clock: ClockCheck = ClockCheck()
    ) {
        self.store = store
        self.request = request
        begin = (now, ContinuousClock.now)
        let fileSystem = store.directory.fileSystem
        let blockSize = fileSystem.kind.givesSmallFilesTheirBlocks ? fileSystem.blockSize : nil
        state = Locked.Box(SweepState(blockSize: blockSize, expiredOnly: request.expiredOnly))
        deletions = Deletions(store: store, request: request, now: now)
        stamp = SweepStamp(clock: clock, datesAttributes: fileSystem.kind.datesAttributes)
        pacer = SweepPacer(request.pace, in: store.control)
    }

    /// Sweeps the store, and judges entries by the time `now`.
    ///
    /// - Throws: ``CacheError/Code/busy`` if another sweep makes no progress, or does not end within the request's
    ///   patience or time limit.
    /// - Complexity: O(*n*) in entries and objects. Two system calls for each entry and one for each object (none for a
    ///   small object on ext4, see ``SweepAllocation``). Two more for each deletion, three if the entry was used after
    ///   the sweep had read it.
    ///
    ///   Memory: 21 to 43 bytes for each content (``ContentMark``), half as much again while the table grows. If limits
    ///   are set, also 88 bytes for each candidate (``SweepCandidates``): an eighth more candidates than entries to
    ///   evict, at least 98,000 and at most 4 million. Measured for the whole process with a million entries that each
    ///   have a separate value: 67 MB with nothing to evict, 89 MB with a limit that is not exceeded, 143 MB if half of
    ///   the entries are evicted. For 10 million entries: 400 MB and 800 MB.
    package static func run(
        _ request: SweepRequest,
        on store: Store,
        now: Timestamp
    ) throws(CacheError) -> CollectionReport {
        let rest = request.pace.deadline.map { max(.zero, $0 - ContinuousClock.now) }
        var wait = JanitorWait(for: store.janitor, patience: min(request.patience, rest ?? request.patience))
        repeat {
            let report = try runIfDue(request, on: store, now: now) { _ in true }
            if let report { return report }
        } while try wait.pause()
        let (path, hindrance) = (store.janitor.path, wait.hindrance)
        throw CacheError(.busy, to: "collect garbage in", path: path, cause: .timedOut, detail: hindrance)
    }

    /// Sweeps if no other process sweeps and `isDue` returns true for the record of the last sweep; otherwise returns
    /// nil.
    ///
    /// No other sweep can begin while `isDue` runs.
    ///
    /// Three system calls if another process sweeps.
    package static func runIfDue(
        _ request: SweepRequest,
        on store: Store,
        now: Timestamp,
        isDue: (SweepRecord?) -> Bool
    ) throws(CacheError) -> CollectionReport? {
        guard let lock = try store.janitor.take() else { return nil }
        let last = SweepRecord.read(from: lock.descriptor)
        guard isDue(last) else { return nil }
        var sweep = Sweep(request, on: store, now: now)
        return try sweep.run(under: lock, after: last)
    }

    /// Sweeps, and records its begin and its result for other processes.
    private mutating func run(
        under lock: borrowing LockFile,
        after last: SweepRecord?
    ) throws(CacheError) -> CollectionReport {
        var record = SweepRecord(beginning: request, after: last)
        if !request.isDryRun { record.write(to: lock.descriptor) }
        var isComplete = false
        var failure: CacheError?
        do throws(CacheError) {
            rules = try presentRules()
            isComplete = try run(under: lock)
            if isComplete { retireRules() }
        } catch {
            failure = error
        }
        let report = report(isComplete: isComplete)
        record.end(report)
        if !request.isDryRun { record.write(to: lock.descriptor) }
        if let failure { throw failure }
        if !request.isDryRun {
            if let age = report.evictionAge { store.control.noteHorizon(age) }
            if isComplete { store.counters.add(.sweep) }
        }
        return report
    }

    private func report(isComplete: Bool) -> CollectionReport {
        var report = state.value.withLock { $0.finishedReport }
        if state.value.withLock({ $0.rulesAreUnreadable }) {
            report.unreadable.append("\(StoreLayout.rules)")
        }
        report.isDryRun = request.isDryRun
        report.isComplete = isComplete
        report.worked = pacer.busy
        report.evictionAge = deletions.horizon
        report.skippedStripes = Tree.allCases.flatMap { tree in
            deletions.skipped(tree).sorted().map { "\(StoreLayout.lockName(tree, $0))" }
        }
        return report
    }

    // MARK: Steps

    /// Passes over all entries and objects until the limits hold or nothing can be evicted; returns false if the time ran
    /// out.
    ///
    /// One pass is enough, unless more entries have to be evicted than the list of candidates can hold.
    private mutating func run(under lock: borrowing LockFile) throws(CacheError) -> Bool {
        var space = try freeSpaceGoal()
        guard try deleteLeftovers() else { return false }
        var wanted = wantedByUsage(space?.shortfall)
        var isFirst = true
        while true {
            stamp.time = try fileSystemTime(by: lock)
            state.value.withLock { [request] in $0.beginPass(request, wanted: wanted) }
            guard try mark(isFirst: isFirst) else { return false }
            if request.expiredOnly { return true }
            let (order, isCut) = state.value.withLock {
                ($0.pass.candidates.inOrder(), $0.pass.candidates.isCut)
            }
            var position = 0
            while let plan = plan(order[position...], space?.shortfall) {
                guard try evict(order[position..<position + plan.count], plan), pacer.mayGoOn() else {
                    return false
                }
                position += plan.count
                if space?.canLearn ?? false { space?.learn(try store.directory.space()) }
            }
            // The next pass finds the candidates that did not fit into the list. If this pass evicted none, the next one
            // would find the same candidates again.
            let hasEvicted = state.value.withLock { $0.pass.deletions.evictions > 0 }
            if position < order.count || !hasEvicted || !isCut {
                keepCandidates(order[position...])
                return true
            }
            wanted = wantedStill(space?.shortfall)
            isFirst = false
        }
    }

    /// Reads all entries, then checks all objects, and deletes expired entries and orphans; returns false if the time ran
    /// out.
    ///
    /// The order matters: first the stamp, then the barrier, then the entries, and then the objects (see ``Store``).
    private mutating func mark(isFirst: Bool) throws(CacheError) -> Bool {
        let control = store.control
        let withSpace = control.recordsWithSpace
        guard try passBarrier() else { return false }
        let garbage = control.markGarbage(at: begin.time)
        let before = control.recordedUsage
        guard try readEntries() else { return false }
        if let withSpace { noteNoEntryWithSpace(since: withSpace) }
        // This step could run at any time. At this place it costs nothing in a sweep whose time has already run out.
        try clearDeadWriters()
        let between = control.recordedUsage
        let unnamed = control.unnamedBytes
        let partials = try partialBytes()
        let hasSeenObjects = try scan(.objects) { (sweep, shard) throws(CacheError) in
            try sweep.lookAtObjects(inShard: shard)
        }
        guard hasSeenObjects else { return false }
        // A download that has become an object meanwhile counts as an object, so the partial downloads are measured
        // again.
        let partialsLeft = try partialBytes()
        state.value.withLock { $0.partialBytes = partialsLeft.allocated }
        if isFirst {
            let after = control.recordedUsage
            recount(
                before,
                between,
                after,
                unnamed: unnamed &+ partials.mostCounted,
                partials: partialsLeft.allocated
            )
        }
        addOverhead()
        if request.expiredOnly { return true }
        if !request.isDryRun, request.selection == .all { control.forgetGarbage(garbage) }
        return try deleteDangling()
    }

    /// Returns the current time of the file system, taken from a file of the cache; it lags behind the clock by up to a
    /// tick.
    ///
    /// Waits for the next tick, so that everything that happened before the sweep began is older than the stamp.
    private func fileSystemTime(by lock: borrowing LockFile) throws(CacheError) -> Timestamp {
        try describing("take a time stamp", store.directory.path) { () throws(Errno) in
            var start = try lock.descriptor.touched()
            let deadline = ContinuousClock.now + Self.longestTick
            while true {
                let stamp = try lock.descriptor.touched()
                // If no tick comes before the deadline, the clock is set back again and again. Then the stamp is too early and
                // the sweep spares too many files, which is safe.
                if stamp > start || ContinuousClock.now > deadline { return stamp }
                // If the clock was set back, wait for the next tick of its new time.
                start = stamp
                store.control.noteSweepStep()
                sleepThread(for: .microseconds(500))
            }
        }
    }

    /// More than the longest tick: 1 to 10 ms in the kernel (CONFIG_HZ), but two seconds for the times of FAT.
    private static let longestTick: Duration = .seconds(3)

    /// Waits until each put that held an object stripe at the beginning has released it; returns false if the time ran
    /// out.
    private mutating func passBarrier() throws(CacheError) -> Bool {
        request.progress(CacheProgress(.waiting, done: 0, total: StoreLayout.stripeCount))
        let control = store.control
        let skipped = try store.objects.stripes.barrier { count in
            control.noteSweepStep()
            return pacer.mayGoOn() ? deletions.patience(pacer, after: count) : nil
        } held: { stripe in
            control.forgetUnnamed(stripe: stripe)
        }
        if let skipped { deletions.skip(skipped, .objects) }
        return skipped != nil
    }

    private mutating func readEntries() throws(CacheError) -> Bool {
        let file = request.isDryRun ? nil : store.control.fileToComplete
        let filter = file.map { BloomFilter(in: $0.words) }
        let isDone = try scan(.entries) { (sweep, shard) throws(CacheError) in
            try sweep.readEntries(inShard: shard, noting: filter)
        }
        guard isDone else { return false }
        // The filter may lack keys of entries that could not be listed or read. Then it must not be marked as complete.
        if !state.value.withLock({ $0.pass.hasUnreadableEntries }) { file?.completeFilter() }
        return true
    }

    /// If entries name missing objects, reads all entries again and deletes those entries; returns false if the time ran
    /// out.
    private mutating func deleteDangling() throws(CacheError) -> Bool {
        // Entries whose object is missing are no longer candidates, whether this step deletes or spares them.
        guard state.value.withLock({ $0.dropMissing() }) else { return true }
        return try scan(.entries) { (sweep, shard) throws(CacheError) in
            try sweep.deleteDangling(inShard: shard)
        }
    }

    // MARK: Threads

    /// The task of a thread for one shard; returns false if the time ran out.
    typealias ShardTask = @Sendable (inout Sweep, Int) throws(CacheError) -> Bool

    /// Runs `task` for each shard of one tree; returns false if the time ran out.
    private mutating func scan(_ tree: Tree, _ task: @escaping ShardTask) throws(CacheError) -> Bool {
        let progress = request.progress
        return try share(store.shards(tree), task) { number in
            let done = tree == .entries ? number : StoreLayout.shardCount + number
            progress(CacheProgress(.scanning, done: done, total: 2 * StoreLayout.shardCount))
        }
    }

    /// Runs `task` for each of `shards`; returns false if the time ran out.
    ///
    /// At full pace several threads run the tasks. A sparing sweep uses only the calling thread, which rests between
    /// files. `began` is called on the calling thread before each of its tasks, with the number of tasks that began
    /// earlier.
    mutating func share(
        _ shards: [Int],
        _ task: @escaping ShardTask,
        began: (Int) -> Void
    ) throws(CacheError) -> Bool {
        let threads = pacer.isSparing ? 1 : ShardWorkers.usualSize
        let lanes = shards.map(StoreLayout.stripe(ofShard:))
        return try ShardWorkers.run(lanes, threads: threads, worker: &self, progress: began) {
            (sweep, number) throws(CacheError) in try task(&sweep, shards[number])
        }
    }
}
