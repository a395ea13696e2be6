// SPDX-License-Identifier: Apache-2.0

import Platform

/// Compares entries with the objects that they name, after all objects have been read.
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
            try store.deleteEntry(key, ifStill: stored.bytes, patience: patience)
        }
    }

    /// Returns an entry; nil if it is missing, or if a rule has removed it.
    ///
    /// If the rules are not known, the entry is judged without them: it is unknown which entries they remove, but that
    /// does not mean that an entry is damaged.
    private func entry(_ key: Digest) throws(CacheError) -> StoredEntry? {
        if rulesAreKnown {
            guard let stored = try store.entry(key)?.stored else { return nil }
            if !stored.isUndecided { return stored }
        }
        guard try store.directory.status(of: key, .entries)?.kind == .regular else { return nil }
        return try store.entries.recordBytes(key).map { StoredEntry(of: key, $0) }
    }

    private enum Condition {
        case sound, unfinished, corrupt, dangling
    }

    private func condition(of key: Digest, _ stored: StoredEntry) throws(CacheError) -> Condition {
        guard let content = stored.record?.content else {
            // An empty file is an entry that a put is creating, or one that a killed put has left.
            return stored.bytes.isEmpty ? .unfinished : .corrupt
        }
        switch objects.compare(content) {
        // A corrupt object is reported once, not for each entry that names it.
        case .agrees, .corrupt: return .sound
        case .unread: return try conditionOfUnread(key, stored, content)
        case .nothing where options.sample != nil:
            let status = try store.directory.status(of: content.digest, .objects)
            if let status, status.kind == .regular, status.size == Int64(content.length) { return .sound }
            return try conditionOfUnread(key, stored, content)
        // Look again: the object may have been written or deleted since the objects were listed.
        case .nothing, .differs: break
        }
        guard let present = try store.objects.content(ofObject: content.digest)?.content else {
            return try conditionWithoutObject(key, stored)
        }
        return present.digest != content.digest || present == content ? .sound : .corrupt
    }

    private func conditionWithoutObject(
        _ key: Digest,
        _ stored: StoredEntry
    ) throws(CacheError) -> Condition {
        // A sweep may have deleted the object because the entry was overwritten. Then the next verification judges the
        // new entry.
        try store.entries.recordBytes(key) == stored.bytes ? .dangling : .sound
    }

    /// Compares a deferred object with an entry that names it; reads no more of the object than the length in the entry.
    private func conditionOfUnread(
        _ key: Digest,
        _ stored: StoredEntry,
        _ content: Content
    ) throws(CacheError) -> Condition {
        let read = try store.objects.content(ofObject: content.digest, atMost: content.length)
        guard let (present, status) = read else { return try conditionWithoutObject(key, stored) }
        let isLonger = status.size > Int64(present.length)
        if present.digest == content.digest, !isLonger {
            if objects.note(content.digest, present) { count(present) }
            return present == content ? .sound : .corrupt
        }
        // The file is longer than the record states and does not begin with the value. The record may be wrong, and is
        // useless.
        if isLonger, present.digest != content.digest { return .corrupt }
        return try condemning.value.withLock { _ throws(CacheError) -> Condition in
            // Another thread may have judged it for another entry.
            if objects.compare(content) == .corrupt { return .sound }
            guard try store.directory.status(of: content.digest, .objects) != nil else {
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
