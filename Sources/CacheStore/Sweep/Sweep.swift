// SPDX-License-Identifier: Apache-2.0

package import Platform

/// One sweep: mark by reading all entries, delete what is of no use, plan, evict.
///
/// What is of no use goes as it is found: entries that have expired or are too old as they are read, and objects that
/// no entry names as they are listed. Of the other entries it keeps those that may have to go for want of room. What is
/// left of them is written down for the next trims, which take no scan (``ListedEviction``).
///
/// Safe beside any number of readers, writers and other sweeps; a kill at any instant leaves the rest to
/// the next.
///
/// At full pace several threads read the shards and delete, each with a copy of this. They meet between the steps, of
/// which each begins after all of the one before: so every entry has been read before an object is looked at, and
/// whatever was read or deleted counts before anything is decided by it. Within a step threads are at different files,
/// each under no stripe or one, held for a millisecond at most; to the others a sweep on several threads is one that
/// takes its steps in another order, and one hold for several deletions is several holds between which nobody asked.
package struct Sweep: Sendable {
    let parts: StoreParts
    let request: SweepRequest
    /// The time when the sweep was asked for, by the caller's clock, and by one that runs steadily.
    let begin: (time: Timestamp, instant: ContinuousClock.Instant)
    /// What was seen and done so far, which the threads share; never held for what takes a system call.
    let state: Locked<SweepState>.Box
    var deletions: Deletions
    var stamp: SweepStamp
    var pacer: SweepPacer
    /// Those that were in force when it began.
    var rules = RulesInForce.nothing

    init(
        _ request: SweepRequest,
        on parts: StoreParts,
        now: Timestamp,
        clock: ClockWitness = ClockWitness()
    ) {
        self.parts = parts
        self.request = request
        begin = (now, ContinuousClock.now)
        let fileSystem = parts.directory.fileSystem
        let blockSize = fileSystem.kind.givesSmallFilesTheirBlocks ? fileSystem.blockSize : nil
        state = Locked.Box(SweepState(blockSize: blockSize, expiredOnly: request.expiredOnly))
        deletions = Deletions(parts: parts, request: request, now: now)
        stamp = SweepStamp(clock: clock, datesAttributes: fileSystem.kind.datesAttributes)
        pacer = SweepPacer(request.pace, in: parts.control)
    }

    /// Sweeps the store of these parts as it is at `now`.
    ///
    /// - Throws: ``CacheError/Code/busy`` where another sweep did not end within the request's patience, or does not get
    ///   on at all.
    /// - Complexity: O(*n*) in entries and objects: two system calls for each of the former and one for each of the
    ///   latter, of which small ones need none on ext4 (``SweepAllocation``); and two more for each that is deleted, three
    ///   where somebody has been at an entry meanwhile.
    ///
    ///   Memory: 21 to 43 bytes for each content (``ContentMark``), half as much again while their table grows; and, where
    ///   limits are set, 88 for each candidate (``SweepCandidates``), of which there are as many as have to go and an
    ///   eighth more, at least 98,000 and at most 4 million. With a value for each entry that was, of the process as a
    ///   whole, 67 MB for a million of them with nothing to do, 89 with a limit that holds, and 143 MB when half of them
    ///   had to go; for 10 million it comes to 400 MB and 800 MB. A billion would take the marks in parts.
    package static func run(
        _ request: SweepRequest,
        on parts: StoreParts,
        now: Timestamp
    ) throws(CacheError) -> CollectionReport {
        var wait = JanitorWait(for: parts.janitor, patience: request.patience)
        repeat {
            let report = try runIfDue(request, on: parts, now: now) { _ in true }
            if let report { return report }
        } while try wait.pause()
        let (path, hindrance) = (parts.janitor.path, wait.hindrance)
        throw CacheError(.busy, to: "collect garbage in", path: path, cause: .timedOut, detail: hindrance)
    }

    /// Sweeps where no other process does, and only if `isDue` says so of the last sweep, asked when no other
    /// can begin; nil: it was not to be.
    ///
    /// Three system calls where another process sweeps.
    package static func runIfDue(
        _ request: SweepRequest,
        on parts: StoreParts,
        now: Timestamp,
        isDue: (SweepRecord?) -> Bool
    ) throws(CacheError) -> CollectionReport? {
        guard let lock = try parts.janitor.take() else { return nil }
        let last = SweepRecord.read(from: lock.descriptor)
        guard isDue(last) else { return nil }
        var sweep = Sweep(request, on: parts, now: now)
        return try sweep.run(under: lock, after: last)
    }

    /// Sweeps, and leaves word of it for others.
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
            if let age = report.evictionAge { parts.control.noteHorizon(age) }
            if isComplete { parts.counters.add(.sweep) }
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

    /// Passes over everything until the limits hold or nothing can be evicted: once, but where more has to go than
    /// there can be candidates; false: time ran out.
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
                if space?.canLearn ?? false { space?.learn(try parts.directory.space()) }
            }
            // The next pass finds those that were not taken in. Where all were spared it would find the same again.
            let hasEvicted = state.value.withLock { $0.pass.deletions.evictions > 0 }
            if position < order.count || !hasEvicted || !isCut {
                keepCandidates(order[position...])
                return true
            }
            wanted = wantedStill(space?.shortfall)
            isFirst = false
        }
    }

    /// Marks: reads all entries, then looks at all objects, and deletes what is of no use as it finds it; false: time ran
    /// out.
    ///
    /// The order matters: the stamp before the barrier, the barrier before the entries are read, and the
    /// entries before the objects are listed.
    ///
    /// See ``Store``.
    private mutating func mark(isFirst: Bool) throws(CacheError) -> Bool {
        let control = parts.control
        let withSpace = control.recordsWithSpace
        guard try passBarrier() else { return false }
        let replaced = control.replacedEntries
        let before = control.recordedUsage
        guard try readEntries() else { return false }
        if let withSpace { noteNoEntryWithSpace(since: withSpace) }
        // At no particular time; here, so that of a sweep whose time runs out it takes none: in a debug build to
        // look at the whole table takes 65 ms.
        try clearDeadWriters()
        let between = control.recordedUsage
        let unnamed = control.unnamedBytes
        let partials = try partialBytes()
        let hasSeenObjects = try scan(.objects) { (sweep, shard) throws(CacheError) in
            try sweep.lookAtObjects(inShard: shard)
        }
        guard hasSeenObjects else { return false }
        // Those that became objects in between are among the objects.
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
        if !request.isDryRun { control.noteReplacement(0 &- replaced) }
        return try deleteDangling()
    }

    /// The present as the file system dates changes, taken from a file of ours: kernel times lag the
    /// clock by up to a tick.
    ///
    /// Waits for the tick to change, so that everything that was done before the sweep began is older
    /// than the stamp, and one sweep leaves nothing of it.
    private func fileSystemTime(by lock: borrowing LockFile) throws(CacheError) -> Timestamp {
        try describing("take a time stamp", parts.directory.path) { () throws(Errno) in
            let start = try lock.descriptor.touched()
            let deadline = ContinuousClock.now + Self.longestTick
            while true {
                let stamp = try lock.descriptor.touched()
                // Past the deadline the clock must have been put back; an early stamp spares too much,
                // which is safe.
                if stamp > start || ContinuousClock.now > deadline { return stamp }
                parts.control.noteSweepStep()
                sleepThread(for: .microseconds(500))
            }
        }
    }

    /// A tick of the kernel is 1 to 10 ms (CONFIG_HZ), but FAT's file times are two seconds apart.
    private static let longestTick: Duration = .seconds(3)

    /// Waits until every put that held a stripe when this began is over; false: time ran out.
    private mutating func passBarrier() throws(CacheError) -> Bool {
        request.progress(CacheProgress(.waiting, done: 0, total: StoreLayout.stripeCount))
        let control = parts.control
        let skipped = try parts.objects.stripes.barrier { count in
            control.noteSweepStep()
            return pacer.mayGoOn() ? deletions.patience(pacer, after: count) : nil
        } held: { stripe in
            control.forgetUnnamed(stripe: stripe)
        }
        if let skipped { deletions.skip(skipped, .objects) }
        return skipped != nil
    }

    private mutating func readEntries() throws(CacheError) -> Bool {
        let file = request.isDryRun ? nil : parts.control.fileToComplete
        let filter = file.map { KeyFilter(in: $0.words) }
        let isDone = try scan(.entries) { (sweep, shard) throws(CacheError) in
            try sweep.readEntries(inShard: shard, noting: filter)
        }
        guard isDone else { return false }
        // What could not be listed may be missing in it.
        if !state.value.withLock({ $0.pass.hasUnreadableEntries }) { file?.completeFilter() }
        return true
    }

    /// Takes a second look at the entries where an object is missing, to find those that name it; false: time ran out.
    private mutating func deleteDangling() throws(CacheError) -> Bool {
        // Whether they go or are spared, they are no candidates.
        guard state.value.withLock({ $0.dropMissing() }) else { return true }
        return try scan(.entries) { (sweep, shard) throws(CacheError) in
            try sweep.deleteDangling(inShard: shard)
        }
    }

    // MARK: Threads

    /// A task of a thread, about one shard; false: time ran out.
    typealias ShardTask = @Sendable (inout Sweep, Int) throws(CacheError) -> Bool

    /// Runs `task` for each shard of one tree; false: time ran out.
    private mutating func scan(_ tree: Tree, _ task: @escaping ShardTask) throws(CacheError) -> Bool {
        let progress = request.progress
        return try share(parts.shards(tree), task) { number in
            let done = tree == .entries ? number : StoreLayout.shardCount + number
            progress(CacheProgress(.scanning, done: done, total: 2 * StoreLayout.shardCount))
        }
    }

    /// Shares out `shards`: among several threads at full pace, else to this one alone, which rests where it is due.
    ///
    /// `began` is called on this thread, with the number of tasks that were begun. False: time ran out.
    mutating func share(
        _ shards: [Int],
        _ task: @escaping ShardTask,
        began: (Int) -> Void
    ) throws(CacheError) -> Bool {
        let threads = pacer.isSparing ? 1 : SweepCrew.usualSize
        let lanes = shards.map(StoreLayout.stripe(ofShard:))
        return try SweepCrew.run(lanes, threads: threads, worker: &self, progress: began) {
            (sweep, number) throws(CacheError) in try task(&sweep, shards[number])
        }
    }
}
