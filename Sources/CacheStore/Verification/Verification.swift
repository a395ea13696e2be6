// SPDX-License-Identifier: Apache-2.0

import Platform

/// Hashing every object anew and holding every entry against them, beside readers and writers.
///
/// Several threads share out the shards: first those of the objects, then, when all of them have been read, those of
/// the entries.
package struct Verification: Sendable {
    /// What the threads share.
    struct State {
        var report = VerifyReport()
        /// How long to wait for a lock when repairing.
        var patience = SweepRequest.usualStripePatience
        var phase = CacheProgress.Phase.verifying
        /// Of all shards together, as a number of ``shardSteps`` for each.
        var steps = 0.0
        /// The thread that hears of the progress.
        let home = threadNumber
    }

    /// The part of the store to look at.
    private struct Sample {
        /// The objects to read, by shard.
        var objects = [[Digest]](repeating: [], count: StoreLayout.shardCount)
        /// The share of the entries to look at.
        var share = 0.0
    }

    let parts: StoreParts
    let options: VerifyOptions
    private let found: @Sendable (VerifyReport.Finding) -> Void
    private let progress: @Sendable (CacheProgress) -> Void
    let state = Locked<State>.Box(State())
    let objects = VerifiedObjects()
    /// Held by the thread that judges an object that was put aside, so that it is deleted, or stays, for all entries.
    let condemning = Locked<Void>.Box(())
    /// nil: all of it.
    private var sample: Sample?
    /// False where the file of rules is damaged, gone, or not for this process to read: it is reported.
    private(set) var rulesAreKnown = true

    /// Verifies the store of these parts, and deletes what is corrupt or dangling where that is asked for.
    ///
    /// With a sample, that share of the objects is read, and as large a share of the entries is looked at; their
    /// objects must then be there and as long as they should, and are hashed only where they are not.
    ///
    /// - Parameters:
    ///   - found: called with everything that is not as it should be, at once, by any of the threads.
    ///   - progress: called now and then, on the calling thread.
    /// - Complexity: O(*n*) in the bytes of all objects: about 1.5 GB/s a thread with SHA instructions, warm. Memory:
    ///   ``VerifiedObjects``, the names of one shard a thread, and 32 bytes for each object of a sample that is a
    ///   count.
    package static func run(
        _ options: VerifyOptions,
        on parts: StoreParts,
        found: @escaping @Sendable (VerifyReport.Finding) -> Void = { _ in },
        progress: @escaping @Sendable (CacheProgress) -> Void = { _ in }
    ) throws(CacheError) -> VerifyReport {
        var verification = Verification(parts: parts, options: options, found: found, progress: progress)
        verification.rulesAreKnown = try parts.control.rulesAreKnown()
        verification.sample = try verification.chosenSample()
        try verification.verifyAll(.objects)
        try verification.verifyAll(.entries)
        return verification.finishedReport
    }

    /// Verifies a tree, several shards at a time; the objects first.
    private mutating func verifyAll(_ tree: Tree) throws(CacheError) {
        state.value.withLock { state in
            state.phase = tree == .objects ? .verifying : .verifyingEntries
            state.steps = 0
        }
        showProgress()
        let shards = Array(0..<StoreLayout.shardCount)
        try SweepCrew.run(shards, threads: options.threads, worker: &self, progress: { _ in }) {
            (verification, shard) throws(CacheError) in
            try verification.verify(tree, inShard: shard)
            return true
        }
    }

    /// Looks at the files of one shard, or at those of them that are chosen.
    private func verify(_ tree: Tree, inShard shard: Int) throws(CacheError) {
        guard let listing = try listing(tree, shard: shard) else { return step(of: 1) }
        var files = listing.digests
        state.value.withLock { [count = files.count] state in
            state.report.unrecognised += listing.unrecognised
            switch tree {
            case .objects: state.report.listedObjects += count
            case .entries: state.report.listedEntries += count
            }
        }
        if let sample {
            files =
                tree == .objects
                ? sample.objects[shard] : files.filter { _ in Double.random(in: 0..<1) < sample.share }
        }
        for digest in files {
            try passingOver { () throws(CacheError) in
                if tree == .objects { try verifyObject(digest) } else { try verifyEntry(digest) }
            }
            step(of: files.count)
        }
        if files.isEmpty { step(of: 1) }
    }

    private var finishedReport: VerifyReport {
        var report = state.value.withLock { $0.report }
        if options.sample == nil { report.orphans = objects.unreferenced }
        report.unrecognised.sort()
        if !rulesAreKnown { report.unreadable.append("\(StoreLayout.rules)") }
        report.unreadable.sort()
        report.metadataIsLost = RecordLoss.isLikely(without: report.unfinishedEntries, of: report.entries)
        report.isClean = report.isClean && report.unreadable.isEmpty && !report.metadataIsLost
        return report
    }

    // MARK: Sample

    /// Chooses the sample's objects from all of them; nil where there is no sample.
    ///
    /// For a number a reservoir: each object that is listed takes the place of one chosen before with a probability that
    /// leaves all equally likely.
    private func chosenSample() throws(CacheError) -> Sample? {
        guard let kind = options.sample else { return nil }
        var sample = Sample()
        if case .percent(let percent) = kind { sample.share = percent / 100 }
        var reservoir: [Digest] = []
        // None at all would be sound, whatever they are.
        var spare: Digest?
        var listed = 0
        for shard in 0..<StoreLayout.shardCount {
            for digest in try listing(.objects, shard: shard)?.digests ?? [] {
                listed += 1
                let place = Int.random(in: 0..<listed)
                if place == 0 { spare = digest }
                switch kind {
                case .percent: if Double.random(in: 0..<1) < sample.share { reservoir.append(digest) }
                case .count(let limit) where reservoir.count < limit: reservoir.append(digest)
                case .count(let limit): if place < limit { reservoir[place] = digest }
                }
            }
        }
        switch kind {
        case .percent: if reservoir.isEmpty, sample.share > 0, let spare { reservoir = [spare] }
        case .count: sample.share = listed == 0 ? 0 : Double(reservoir.count) / Double(listed)
        }
        for digest in reservoir { sample.objects[digest.shard].append(digest) }
        return sample
    }

    // MARK: Objects

    private func verifyObject(_ digest: Digest) throws(CacheError) {
        // One that was lengthened by a terabyte takes no time to make, and ten minutes to read.
        let status = try parts.directory.status(of: digest, .objects)
        if status?.hasLargeHoles == true { return objects.noteUnread(digest) }
        guard let content = try parts.objects.content(ofObject: digest)?.content else { return }
        count(content)
        if content.digest == digest {
            objects.note(digest, content)
            return
        }
        // Where it is deleted, the entries that name it are dangling.
        if try !condemn(digest, expecting: nil) { objects.note(digest, nil) }
    }

    func count(_ content: Content) {
        state.value.withLock { state in
            state.report.objects += 1
            state.report.objectBytes += Int64(content.length)
        }
    }

    /// Reports a corrupt object; true where it was deleted.
    func condemn(_ digest: Digest, expecting length: Int?) throws(CacheError) -> Bool {
        report(.corruptObject(digest))
        return try repair { (patience) throws(CacheError) in
            try parts.objects.deleteIfCorrupt(digest, expecting: length, patience: patience) == .deleted
        }
    }

    // MARK: What both do

    func report(_ finding: VerifyReport.Finding) {
        state.value.withLock { $0.report.add(finding) }
        found(finding)
    }

    /// Deletes what was found, if that was asked for.
    ///
    /// Where somebody who is stopped holds the lock it stays, reported, for the next time; one wait is
    /// enough for all that he holds.
    func repair(_ delete: (Duration) throws(CacheError) -> Bool) throws(CacheError) -> Bool {
        guard options.repair else { return false }
        do throws(CacheError) {
            guard try delete(state.value.withLock { $0.patience }) else { return false }
            state.value.withLock { $0.report.repaired += 1 }
            return true
        } catch {
            guard error.code == .busy else { throw error }
            state.value.withLock { $0.patience = .zero }
            return false
        }
    }

    /// nil where the shard can't be listed, which is noted.
    private func listing(_ tree: Tree, shard: Int) throws(CacheError) -> StoreParts.Listing? {
        try passingOver { () throws(CacheError) in try parts.digests(tree, shard: shard) }
    }

    /// Notes a failure that concerns a single file or shard, and gives nil then; what concerns all ends the
    /// verification.
    @discardableResult
    private func passingOver<Value>(_ body: () throws(CacheError) -> Value) throws(CacheError) -> Value? {
        do throws(CacheError) {
            return try body()
        } catch {
            guard error.concernsOneFile else { throw error }
            let path = parts.directory.relativePath(error)
            state.value.withLock { $0.report.unreadable.append(path) }
            return nil
        }
    }

    // MARK: Progress

    /// Steps of a shard, however many files it has: fine enough to tell the time that is left of hours.
    private static let shardSteps = 4096.0

    /// Counts one of the files of a shard as done.
    private func step(of count: Int) {
        let home = state.value.withLock { state in
            state.steps += Self.shardSteps / Double(count)
            return state.home
        }
        if threadNumber == home { showProgress() }
    }

    private func showProgress() {
        let (phase, report, steps) = state.value.withLock { ($0.phase, $0.report, $0.steps) }
        let isOfObjects = phase == .verifying
        progress(
            CacheProgress(
                phase,
                done: Int(steps),
                total: Int(Self.shardSteps) * StoreLayout.shardCount,
                items: isOfObjects ? report.objects : report.entries,
                bytes: isOfObjects ? report.objectBytes : nil
            )
        )
    }
}
