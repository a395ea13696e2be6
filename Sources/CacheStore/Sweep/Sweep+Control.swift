// SPDX-License-Identifier: Apache-2.0

import Platform

/// The parts of a sweep that read and update the control file.
extension Sweep {
    /// Removes from the generation table those writers that were killed while they published.
    ///
    /// No writer of a stripe is active while the stripe is held exclusively, so any writer that is still counted is dead.
    /// It may have published its entry, so this function also raises the version. Until then no process keeps values of
    /// the affected keys in memory.
    func clearDeadWriters() throws(CacheError) {
        if request.isDryRun { return }
        let control = store.control
        for stripe in 0..<StoreLayout.stripeCount where control.hasWriters(inStripe: stripe) {
            do throws(CacheError) {
                let patience = deletions.patience(pacer)
                control.noteSweepStep()
                let lock = try store.entries.stripes.lock(.exclusive, stripe: stripe, patience: patience)
                control.clearWriters(ofStripe: stripe)
                lock.release()
            } catch {
                guard error.code == .busy else { throw error }
                deletions.skip([stripe], .entries)
            }
        }
    }

    /// Returns the rules in force at the beginning of the sweep.
    ///
    /// They are read before the barrier: a writer that has not seen them has published its entry before the sweep reads
    /// the entries.
    ///
    /// If the file of rules is missing or damaged, this function replaces it by a rule that removes all entries, except
    /// in a dry run. If this process can't read or replace the file, the sweep reports that and removes nothing by rules.
    func presentRules() throws(CacheError) -> RulesInForce {
        do throws(CacheError) {
            let rules = try store.control.rulesInForce()
            guard case .unknown = rules, !request.isDryRun else { return rules }
            try store.control.restoreRules(now: begin.time)
            return try store.control.rulesInForce()
        } catch {
            guard error.concernsOneFile || error.cause?.meaning == .notAFile else { throw error }
            state.value.withLock { $0.rulesAreUnreadable = true }
            return .unknown
        }
    }

    /// Deletes the rules whose entries are all deleted, and records the latest creation time of all entries.
    ///
    /// It does nothing in a dry run, if a file could not be read, or if a stripe could not be acquired: a writer that
    /// started before the sweep may not have finished.
    func retireRules() {
        let hasSkipped = Tree.allCases.contains { !deletions.skipped($0).isEmpty }
        let (watch, isWhole) = state.value.withLock { ($0.ruleWatch, $0.report.unreadable.isEmpty) }
        guard !request.isDryRun, !hasSkipped, isWhole else { return }
        store.control.noteAllCreated(watch.latestCreated)
        guard case .these(let rules, let number) = rules, !watch.areAllKept else { return }
        let over = rules.rules.filter { $0.number <= number && !watch.kept.contains($0.number) }
        if over.isEmpty { return }
        do throws(CacheError) {
            try store.control.retire(over)
        } catch {
            // The next sweep does it.
            store.counters.add(.controlFailure)
        }
    }

    /// Corrects the usage by the result of the scan.
    ///
    /// A writer counts an object before it gives the object its name. So the scan finds every object that was counted
    /// before the scan, except those in `unnamed`, and every object that the scan finds is counted by the end of the
    /// scan. That gives two bounds: the usage is lowered only if it was too high at the beginning of the scan, and raised
    /// only if it is too low at the end.
    ///
    /// A writer creates an entry before it counts the entry, so there are no such bounds for entries. The scan visits the
    /// shards one after the other, and sees about half of the entries that are created meanwhile. So its result is
    /// compared with the mean of the counts before and after the scan.
    ///
    /// Partial downloads are measured before and after the scan of the objects. The first bound does not treat those
    /// found before the scan as excess, including the space that their processes have reserved. The second bound requires
    /// that those left after the scan are counted. A download that becomes an object in the few system calls between the
    /// reading of `between` and the first measurement may be missing in both measurements. Then the usage is too low by
    /// its size until the next sweep.
    ///
    /// Files that the scan itself has deleted do not affect the result. If a file could not be read, the usage is not
    /// corrected.
    ///
    /// - Parameters:
    ///   - before: the usage before the entries were scanned.
    ///   - between: the usage after the entries and before the objects were scanned.
    ///   - after: the usage after the objects were scanned.
    ///   - unnamed: the bytes that may have been counted, before the objects were scanned, for objects without a name and
    ///     for partial downloads.
    ///   - partials: the bytes on disk of the partial downloads after the objects were scanned.
    func recount(
        _ before: StoreUsage?,
        _ between: StoreUsage?,
        _ after: StoreUsage?,
        unnamed: Int64,
        partials: Int64
    ) {
        let (report, deletions) = state.value.withLock { ($0.report, $0.pass.deletions) }
        guard !request.isDryRun, report.unreadable.isEmpty, let before, let between, let after else { return }
        // Wrapping arithmetic, because the words may hold any numbers. This function corrects them.
        let objects = report.objects.bytes &+ deletions.objectBytes
        let found = report.entries.bytes &+ objects
        var bytes = max(0, between.bytes &- unnamed &- found)
        if bytes == 0 { bytes = min(0, after.bytes &+ deletions.objectBytes &- found &- partials) }
        let entries = (before.entries &- deletions.entries).middle(between.entries) &- report.entries.count
        store.control.addUsage(bytes: 0 &- bytes, entries: 0 &- entries)
        store.control.noteUsageIsCounted()
        let drift = CollectionReport.Tally(count: Int(Int64(entries).plausible), bytes: bytes.plausible)
        state.value.withLock { $0.report.drift = drift }
    }

    /// Records that no entry takes space besides its inode, if the sweep found none that does.
    ///
    /// - Parameter number: ``Control/recordsWithSpace`` before the barrier. A writer that was about to write a record
    ///   that takes space has written it since then, unless its stripe was skipped.
    func noteNoEntryWithSpace(since number: UInt64) {
        let isKnown = state.value.withLock { !$0.pass.hasUnreadableEntries && $0.report.entries.bytes == 0 }
        guard isKnown, !request.isDryRun, deletions.skipped(.objects).isEmpty else { return }
        store.control.noteNoEntryWithSpace(since: number)
    }

    /// Adds the sizes on disk of the directories and of the files in the root to the overhead.
    ///
    /// Files that the sweep itself writes count with the size that they will have, so that a dry run before the sweep
    /// finds the same overhead. Files whose status can't be read are omitted: the sum is a hint. About 20 system calls.
    func addOverhead() {
        let directory = store.directory
        // The file of the `janitor` lock, which takes no space before the first sweep; a dry run does not write to it.
        var bytes = directory.fileSystem.blockSize
        var growing: Int64 = 0
        bestEffort { () throws(Errno) in
            bytes += try directory.root.descriptor.status().allocatedSize
            for name in try directory.root.names()
            where name != "\(StoreLayout.candidates)" && name.utf8.count < RelativePath.capacity {
                let status = try directory.root.presentStatus(of: RelativePath(name))
                guard let status, status.kind == .regular || StoreLayout.partNames.contains(name) else {
                    continue
                }
                // The log counts with its maximum size, and what exceeds that is added below.
                if StoreLayout.eventFiles.contains(where: { name == "\($0)" }) { continue }
                if StoreLayout.growingFiles.contains(where: { name == "\($0)" }) {
                    growing += status.allocatedSize
                } else {
                    bytes += status.allocatedSize
                }
            }
        }
        growing += store.eventLogExcess(store.configuration.limits)
        let keepsList = request.limits.areBounding
        let (sum, hasIndexBlocks) = state.value.withLock { [bytes, growing] state in
            state.pass.overhead += bytes
            if keepsList {
                let count = state.report.entries.count
                let length = CandidateList.size(ofCount: min(count, Self.listLength(ofEntries: count)))
                state.pass.overhead += directory.allocation(of: length)
            }
            // The minimum includes shards that do not exist yet.
            let sum = max(state.pass.overhead, directory.usualOverhead) + growing
            state.pass.overhead = sum + store.eventLogSpace
            return (sum, state.pass.hasIndexBlocks)
        }
        if request.isDryRun { return }
        store.control.noteOverhead(bytes: sum)
        store.control.noteIndexBlocks(hasIndexBlocks)
    }
}

extension FixedWidthInteger {
    /// Returns the middle of two numbers.
    fileprivate func middle(_ other: Self) -> Self { self &+ (other &- self) / 2 }
}

extension Control {
    func hasWriters(inStripe stripe: Int) -> Bool {
        guard let words = writableWords else { return false }
        return words.firstIndex(in: Self.words(ofStripe: stripe), havingAnyOf: GenerationWord.writers) != nil
    }

    private static func words(ofStripe stripe: Int) -> Range<Int> {
        let indices = Generation.indices(ofStripe: stripe)
        let first = ControlLayout.generations + indices.lowerBound
        return first..<first + indices.count
    }

    /// Clears the writers of a stripe, which the caller holds exclusively.
    func clearWriters(ofStripe stripe: Int) {
        guard let words = writableWords else { return }
        let range = Self.words(ofStripe: stripe)
        var next = range.lowerBound
        while let place = words.firstIndex(in: next..<range.upperBound, havingAnyOf: GenerationWord.writers) {
            let word = words.load(place)
            let isCleared = words.replace(
                word,
                by: GenerationWord(rawValue: word).cleared.rawValue,
                at: place
            )
            next = isCleared ? place + 1 : place
        }
    }
}
