// SPDX-License-Identifier: Apache-2.0

import Platform

/// What re-reading everything found.
package struct VerificationReport: Sendable {
    package var objects = 0
    package var objectBytes: Int64 = 0
    package var entries = 0
    /// Objects whose bytes don't hash to their name.
    package var corruptObjects: [Digest] = []
    /// Entries whose record does not parse, or disagrees with the object that it names.
    package var corruptEntries: [Digest] = []
    /// Entries whose object is gone, and would be a miss.
    package var danglingEntries: [Digest] = []
    /// Entries without a record: what a put leaves that is killed, or has just begun.
    ///
    /// No fault.
    package var unfinishedEntries = 0
    /// Objects that no entry names: the next sweep deletes them.
    package var orphans = 0
    package var unrecognised: [UnrecognisedFile] = []
    /// Of the corrupt and dangling ones, how many were deleted on request.
    package var repaired = 0

    package init() {}

    /// Whether everything is as it should be.
    ///
    /// Orphans and unfinished entries are no fault.
    package var isClean: Bool {
        corruptObjects.isEmpty && corruptEntries.isEmpty && danglingEntries.isEmpty
    }
}

/// Hashing every object anew and holding every entry against them, beside readers and writers.
package struct Verification {
    private let store: Store
    private let isRepairing: Bool
    private let progress: (SweepProgress) -> Void
    private let scan: StoreScan
    private var report = VerificationReport()
    /// What the bytes of each object really are.
    private var found: [Digest: Content] = [:]
    /// How long to wait for a lock when repairing.
    private var patience = SweepWorker.stripePatience

    /// Verifies `store`, and with `isRepairing` deletes what is corrupt or dangling.
    ///
    /// - Complexity: O(*n*) in the bytes of all objects: about 1.5 GB/s with SHA instructions, warm.
    package static func run(
        on store: Store,
        isRepairing: Bool,
        progress: @escaping (SweepProgress) -> Void = { _ in }
    ) throws(StoreError) -> VerificationReport {
        var verification = Verification(
            store: store,
            isRepairing: isRepairing,
            progress: progress,
            scan: StoreScan(of: store)
        )
        try verification.verifyObjects()
        try verification.verifyEntries()
        return verification.report
    }

    private mutating func verifyObjects() throws(StoreError) {
        let store = store
        for shard in 0..<256 {
            progress(SweepProgress(phase: .verifying, done: shard, total: 256))
            let listing = try scan.digests(.objects, shard: shard)
            report.unrecognised += listing.unrecognised
            for digest in listing.digests {
                guard let content = try store.content(ofObject: digest) else { continue }
                report.objects += 1
                report.objectBytes += Int64(content.length)
                found[digest] = content
                if content.digest == digest { continue }
                report.corruptObjects.append(digest)
                let isRepaired = try repair { (patience) throws(StoreError) in
                    try store.deleteIfCorrupt(digest, patience: patience)
                }
                // Then the entries that name it are dangling.
                if isRepaired { found[digest] = nil }
            }
        }
    }

    private mutating func verifyEntries() throws(StoreError) {
        let store = store
        var referenced: Set<Digest> = []
        for shard in 0..<256 {
            let listing = try scan.digests(.entries, shard: shard)
            report.unrecognised += listing.unrecognised
            for key in listing.digests {
                guard let stored = try scan.entry(key)?.stored else { continue }
                report.entries += 1
                if let content = stored.record?.content { referenced.insert(content.digest) }
                switch try state(of: key, stored) {
                case .sound: continue
                case .unfinished: report.unfinishedEntries += 1
                case .corrupt: report.corruptEntries.append(key)
                case .dangling: report.danglingEntries.append(key)
                }
                _ = try repair { (patience) throws(StoreError) in
                    try store.deleteEntry(key, ifStill: stored.bytes, patience: patience)
                }
            }
        }
        report.orphans = found.count { $0.key == $0.value.digest && !referenced.contains($0.key) }
    }

    /// Deletes what was found, if that was asked for.
    ///
    /// Where somebody who is stopped holds the lock it stays, reported, for the next time; one wait is
    /// enough for all that he holds.
    private mutating func repair(
        _ delete: (Duration) throws(StoreError) -> Bool
    ) throws(StoreError) -> Bool {
        guard isRepairing else { return false }
        do throws(StoreError) {
            guard try delete(patience) else { return false }
            report.repaired += 1
            return true
        } catch {
            guard error.code == .busy else { throw error }
            patience = .zero
            return false
        }
    }

    private enum State {
        case sound, unfinished, corrupt, dangling
    }

    private func state(of key: Digest, _ stored: StoredEntry) throws(StoreError) -> State {
        guard let record = stored.record else {
            // Without a byte it is an entry that is being made, or whose maker was killed.
            return stored.bytes.isEmpty ? .unfinished : .corrupt
        }
        let digest = record.content.digest
        // Not there when the objects were listed: written since, swept since, or gone before.
        var known = found[digest]
        if known == nil { known = try store.content(ofObject: digest) }
        guard let content = known else {
            // Swept because the entry had been overwritten: then it is another one now, judged next time.
            return try store.entries.read(key)?.bytes == stored.bytes ? .dangling : .sound
        }
        // An object that is corrupt is reported as such, once, and not with each entry that names it.
        if content.digest != digest { return .sound }
        return content == record.content ? .sound : .corrupt
    }
}
