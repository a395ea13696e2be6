// SPDX-License-Identifier: Apache-2.0

import Platform

/// Verifies a store, while it is read and written: hashes each object and compares each entry with its object.
///
/// Several threads share the shards: first the objects' shards, then, when all objects have been read, the entries' shards.
package struct Verification: Sendable {
    /// The state that the threads share.
    struct State {
        var report = VerifyReport()
        /// How long to wait for a lock when repairing.
        var patience = SweepRequest.usualStripePatience
        var phase = CacheProgress.Phase.verifying
        /// The progress of all shards, ``shardSteps`` for each.
        var steps = 0.0
        /// The thread that reports the progress.
        let home = threadNumber
    }

    /// The part of the store to verify.
    private struct Sample {
        /// The objects to read, by shard.
        var objects = [[Digest]](repeating: [], count: StoreLayout.shardCount)
        /// The share of the entries to verify.
        var share = 0.0
    }

    let store: Store
    let options: VerifyOptions
    private let found: @Sendable (VerifyReport.Finding) -> Void
    private let progress: @Sendable (CacheProgress) -> Void
    let state = Locked<State>.Box(State())
    let objects = VerifiedObjects()
    /// Held by the thread that judges a deferred object, so that it is deleted, or stays, for all entries.
    let condemning = Locked<Void>.Box(())
    /// nil to verify everything.
    private var sample: Sample?
    /// Whether the file of rules is usable; reported if it is damaged, missing or unreadable for this process.
    private(set) var rulesAreKnown = true

    /// Verifies the store, and deletes corrupt and dangling files if the options ask for it.
    ///
    /// With a sample, that share of the objects is read, and the same share of the entries is checked. Their objects must
    /// then exist and have the right length, and are hashed only if they don't.
    ///
    /// - Parameters:
    ///   - found: called for each finding at once, by any of the threads.
    ///   - progress: called now and then, on the calling thread.
    /// - Complexity: O(*n*) in the bytes of all objects: about 1.5 GB/s for each thread with SHA instructions, warm. Memory:
    ///   ``VerifiedObjects``, the names of one shard for each thread, and 32 bytes for each object of a sample that is a
    ///   count.
    package static func run(
        _ options: VerifyOptions,
        on store: Store,
        found: @escaping @Sendable (VerifyReport.Finding) -> Void = { _ in },
        progress: @escaping @Sendable (CacheProgress) -> Void = { _ in }
    ) throws(CacheError) -> VerifyReport {
        var verification = Verification(store: store, options: options, found: found, progress: progress)
        verification.rulesAreKnown = try store.control.rulesAreKnown()
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
        try ShardWorkers.run(shards, threads: options.threads, worker: &self, progress: { _ in }) {
            (verification, shard) throws(CacheError) in
            try verification.verify(tree, inShard: shard)
            return true
        }
    }

    /// Verifies the files of one shard, or the chosen ones of them.
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

    /// Chooses the sample's objects from all of them; returns nil if there is no sample.
    ///
    /// A number is chosen by reservoir sampling: each listed object replaces a chosen one with a probability that leaves all
    /// equally likely.
    private func chosenSample() throws(CacheError) -> Sample? {
        guard let kind = options.sample else { return nil }
        var sample = Sample()
        if case .percent(let percent) = kind { sample.share = percent / 100 }
        var reservoir: [Digest] = []
        // An empty sample would always be sound.
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
        // A file that was lengthened by a terabyte takes no time to make, and ten minutes to read.
        let status = try store.directory.status(of: digest, .objects)
        if status?.hasLargeHoles == true { return objects.noteUnread(digest) }
        guard let content = try store.objects.content(ofObject: digest)?.content else { return }
        count(content)
        if content.digest == digest {
            objects.note(digest, content)
            return
        }
        // If it is deleted, the entries that name it are dangling.
        if try !condemn(digest, expecting: nil) { objects.note(digest, nil) }
    }

    func count(_ content: Content) {
        state.value.withLock { state in
            state.report.objects += 1
            state.report.objectBytes += Int64(content.length)
        }
    }

    /// Reports a corrupt object; returns whether it was deleted.
    func condemn(_ digest: Digest, expecting length: Int?) throws(CacheError) -> Bool {
        report(.corruptObject(digest))
        return try repair { (patience) throws(CacheError) in
            try store.objects.deleteIfCorrupt(digest, expecting: length, patience: patience) == .deleted
        }
    }

    // MARK: Shared

    func report(_ finding: VerifyReport.Finding) {
        state.value.withLock { $0.report.add(finding) }
        found(finding)
    }

    /// Deletes a finding's file, if the options ask for it.
    ///
    /// If a stopped process holds the lock, the file is reported and stays until the next time; after one such wait there
    /// are no others.
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

    /// Lists a shard; returns nil if it can't be listed, which is recorded.
    private func listing(_ tree: Tree, shard: Int) throws(CacheError) -> Store.Listing? {
        try passingOver { () throws(CacheError) in try store.digests(tree, shard: shard) }
    }

    /// Records a failure that concerns a single file or shard and returns nil; rethrows any other, which ends the
    /// verification.
    @discardableResult
    private func passingOver<Value>(_ body: () throws(CacheError) -> Value) throws(CacheError) -> Value? {
        do throws(CacheError) {
            return try body()
        } catch {
            guard error.concernsOneFile else { throw error }
            let path = store.directory.relativePath(error)
            state.value.withLock { $0.report.unreadable.append(path) }
            return nil
        }
    }

    // MARK: Progress

    /// The steps of a shard, however many files it has: fine enough to estimate the remaining time of hours.
    private static let shardSteps = 4096.0

    /// Counts a file of a shard as done, given the number of its files.
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
