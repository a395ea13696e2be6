// SPDX-License-Identifier: Apache-2.0

import Platform

/// How a sweep deletes: everything is looked at again under its stripe, as others have been at work since the
/// scan.
extension Sweep {
    mutating func deleteEntries(_ removals: [SweepPlan.Removal]) throws(StoreError) {
        for (done, removal) in removals.enumerated() {
            if done % 256 == 0 {
                progress(SweepProgress(phase: .deleting, done: done, total: removals.count))
            }
            guard mayGoOn() else { return }
            try remove(entries[removal.index], removal.reason)
        }
    }

    /// Deletes an entry that was counted as one that stays, and counts it as gone.
    mutating func remove(_ entry: ScannedEntry, _ reason: SweepReason) throws(StoreError) {
        if skippedEntries.contains(entry.key.stripe) { return }
        guard try delete(entry, reason) else {
            if !skippedEntries.contains(entry.key.stripe) { report.spared += 1 }
            return
        }
        report.removed[reason, default: SweepTally()].add(entry.allocatedSize)
        noteRemoval(reason, bytes: entry.allocatedSize, entries: 1)
        report.entries.subtract(entry.allocatedSize)
        guard let content = entry.content, let count = references[content] else { return }
        references[content] = count - 1
        if count == 1 { freed[content] = reason }
    }

    /// Decides again under the lock that keeps writers away; false: the entry stays as it is.
    private mutating func delete(_ entry: ScannedEntry, _ reason: SweepReason) throws(StoreError) -> Bool {
        do throws(StoreError) {
            return try store.entryStripes.withLock(
                .exclusive,
                of: entry.key,
                patience: min(Self.stripePatience, pacer.rest)
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

    /// Deletes the objects that no entry names by now; nothing where there is no stamp to be trusted.
    mutating func deleteObjects(changedBefore stamp: Timestamp?) throws(StoreError) {
        guard let stamp else { return }
        let unreferenced = takeUnreferencedObjects()
        for (done, object) in unreferenced.enumerated() {
            if done % 256 == 0 {
                progress(SweepProgress(phase: .deleting, done: done, total: unreferenced.count))
            }
            guard mayGoOn() else { return }
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

    private mutating func takeUnreferencedObjects() -> [ScannedObject] {
        let isUnreferenced = { [references, freed, request] (object: ScannedObject) in
            references[object.digest, default: 0] == 0
                && (!request.expiredOnly || freed[object.digest] != nil)
        }
        let unreferenced = objects.filter(isUnreferenced)
        objects.removeAll(where: isUnreferenced)
        return unreferenced
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
                patience: min(Self.stripePatience, pacer.rest)
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
