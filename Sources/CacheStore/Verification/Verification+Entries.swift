// SPDX-License-Identifier: Apache-2.0

import Platform

/// Holding entries against the objects that they name, all of which have been read.
extension Verification {
    func verifyEntry(_ key: Digest) throws(CacheError) {
        guard let stored = try entry(key) else { return }
        let isOfFuture = stored.record?.isOfFuture(at: .now) ?? false
        state.value.withLock { state in
            state.report.entries += 1
            if isOfFuture { state.report.futureEntries += 1 }
        }
        switch try condition(of: key, stored) {
        case .sound: return
        case .unfinished: state.value.withLock { $0.report.unfinishedEntries += 1 }
        case .corrupt: report(.corruptEntry(key))
        case .dangling: report(.danglingEntry(key))
        }
        _ = try repair { (patience) throws(CacheError) in
            try parts.deleteEntry(key, ifStill: stored.bytes, patience: patience)
        }
    }

    /// nil where it is gone, or a rule has removed it.
    ///
    /// Without the rules an entry is judged as if there were none: which ones they remove is not known, and none of them is
    /// damaged for it.
    private func entry(_ key: Digest) throws(CacheError) -> StoredEntry? {
        if rulesAreKnown {
            guard let stored = try parts.entry(key)?.stored else { return nil }
            if !stored.isUndecided { return stored }
        }
        guard try parts.directory.status(of: key, .entries)?.kind == .regular else { return nil }
        return try parts.entries.recordBytes(key).map { StoredEntry(of: key, $0) }
    }

    private enum Condition {
        case sound, unfinished, corrupt, dangling
    }

    private func condition(of key: Digest, _ stored: StoredEntry) throws(CacheError) -> Condition {
        guard let content = stored.record?.content else {
            // Without a byte it is an entry that is being made, or whose maker was killed.
            return stored.bytes.isEmpty ? .unfinished : .corrupt
        }
        switch objects.compare(content) {
        // A corrupt object is reported as such, once, and not with each entry that names it.
        case .agrees, .corrupt: return .sound
        case .unread: return try conditionOfUnread(key, stored, content)
        case .nothing where options.sample != nil:
            let status = try parts.directory.status(of: content.digest, .objects)
            if let status, status.kind == .regular, status.size == Int64(content.length) { return .sound }
            return try conditionOfUnread(key, stored, content)
        // Not there when the objects were listed: written since, swept since, or gone before.
        case .nothing, .differs: break
        }
        guard let present = try parts.objects.content(ofObject: content.digest)?.content else {
            return try conditionWithoutObject(key, stored)
        }
        return present.digest != content.digest || present == content ? .sound : .corrupt
    }

    private func conditionWithoutObject(
        _ key: Digest,
        _ stored: StoredEntry
    ) throws(CacheError) -> Condition {
        // Swept because the entry had been overwritten: then it is another one now, judged next time.
        try parts.entries.recordBytes(key) == stored.bytes ? .dangling : .sound
    }

    /// Holds an object that was put aside against the entry that names it, of which no more is read than that says.
    private func conditionOfUnread(
        _ key: Digest,
        _ stored: StoredEntry,
        _ content: Content
    ) throws(CacheError) -> Condition {
        let read = try parts.objects.content(ofObject: content.digest, atMost: content.length)
        guard let (present, status) = read else { return try conditionWithoutObject(key, stored) }
        let isLonger = status.size > Int64(present.length)
        if present.digest == content.digest, !isLonger {
            if objects.note(content.digest, present) { count(present) }
            return present == content ? .sound : .corrupt
        }
        // Longer, and not with the value at its beginning: the record may be wrong, and is of no use.
        if isLonger, present.digest != content.digest { return .corrupt }
        return try condemning.value.withLock { _ throws(CacheError) -> Condition in
            // Another thread may have come upon it by another entry.
            if objects.compare(content) == .corrupt { return .sound }
            guard try parts.directory.status(of: content.digest, .objects) != nil else {
                return try conditionWithoutObject(key, stored)
            }
            guard try condemn(content.digest, expecting: content.length) else {
                objects.note(content.digest, nil)
                return .sound
            }
            objects.noteDeleted(content.digest)
            return .dangling
        }
    }
}
