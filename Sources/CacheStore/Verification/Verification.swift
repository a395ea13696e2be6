// SPDX-License-Identifier: Apache-2.0

import Platform

/// Verifies a store while other processes read and write it: hashes each object, and compares each entry with its object.
///
/// Several threads verify different shards at a time: first the shards of the objects and then, when all objects have
/// been read, the shards of the entries.
package struct Verification: Sendable {
    /// The state that the threads share.
    struct State {
        var report = VerifyReport()
        /// How long to wait for a lock when repairing.
        var patience = SweepRequest.usualStripePatience
        var phase = CacheProgress.Phase.verifying
        /// The finished steps of all shards; each shard has ``shardSteps``.
        var steps = 0.0
        /// The thread that reports the progress.
        let home = threadNumber
    }

    /// The part of the store to verify.
    private struct Sample {
        /// The objects to read, by shard.
        var objects = [[Digest]](repeating: [], count: StoreLayout.shardCount)
        /// The share of the entries to verify, from 0 to 1.
        var share = 0.0
    }

    let store: Store
    let options: VerifyOptions
    private let found: @Sendable (VerifyReport.Finding) -> Void
    private let progress: @Sendable (CacheProgress) -> Void
    let state = Locked<State>.Box(State())
    let objects = VerifiedObjects()
    /// Held by a thread while it judges a deferred object, so that the object is judged once for all entries that name
    /// it.
    let condemning = Locked<Void>.Box(())
    /// The sample; nil to verify everything.
    private var sample: Sample?
    /// Whether this process can use the file of rules; if it is damaged, missing or unreadable, the report says so.
    private(set) var rulesAreKnown = true

    /// Verifies the store, and deletes corrupt and dangling files if the options ask for it.
    ///
    /// With a sample, that share of the objects is read, and the same share of the entries is checked. An entry's object
    /// must then exist and have the right length. It is hashed only if it does not.
    ///
    /// - Parameters:
    ///   - found: called for each finding as soon as it is found, on any of the threads.
    ///   - progress: called now and then, on the calling thread.
    /// - Complexity: O(*n*) in the bytes of all objects: about 1.5 GB/s for each thread with SHA instructions, if the
    ///   files are cached. Memory: ``VerifiedObjects``, the names of one shard for each thread, and 32 bytes for each
    ///   object of a sample.
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

    /// Verifies all shards of a tree, several at a time.
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

    /// Verifies the files of one shard, or those of them that belong to the sample.
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

    /// Chooses the sample's objects from all objects; returns nil if there is no sample.
    ///
    /// A fixed number of objects is chosen by reservoir sampling: each listed object replaces a chosen one with a
    /// probability that makes all objects equally likely.
    private func chosenSample() throws(CacheError) -> Sample? {
        guard let kind = options.sample else { return nil }
        var sample = Sample()
        if case .percent(let percent) = kind { sample.share = percent / 100 }
        var reservoir: [Digest] = []
        // Chosen if no other object is: an empty sample would always be sound.
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
        // A file that was extended by a terabyte takes no time to create and ten minutes to read, so reading a file with
        // large holes is deferred.
        let status = try store.directory.status(of: digest, .objects)
        if status?.hasLargeHoles == true { return objects.noteUnread(digest) }
        guard let content = try store.objects.content(ofObject: digest)?.content else { return }
        count(content)
        if content.digest == digest {
            objects.note(digest, content)
            return
        }
        // If the object is deleted, it is not recorded, so the entries that name it are dangling.
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

    /// Deletes the file of a finding if the options ask for it; returns whether it was deleted.
    ///
    /// If a stopped process holds the lock, the file stays until the next verification. After one such wait, later calls
    /// don't wait.
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

    /// Lists a shard; if that fails, records the failure and returns nil.
    private func listing(_ tree: Tree, shard: Int) throws(CacheError) -> Store.Listing? {
        try passingOver { () throws(CacheError) in try store.digests(tree, shard: shard) }
    }

    /// If `body` fails because of one file or shard, records that and returns nil; rethrows any other error, which ends
    /// the verification.
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

    /// The number of steps of each shard, however many files it has.
    ///
    /// It is large enough to estimate the remaining time of a verification that takes hours.
    private static let shardSteps = 4096.0

    /// Counts one file of a shard with `count` files as done.
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
