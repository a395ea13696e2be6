// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// What is there of a key, whether a get would find it or not.
package struct EntryExplanation: Sendable {
    package let stored: StoredEntry
    package let accessed: Timestamp
    /// Of its object; nil where there is none, or it was not looked for, as no get would.
    package var objectLength: Int64?
}

/// Looks that don't count as accesses: what a later write depends on, and what a get would find.
extension Store {
    /// The value of `key`, as a get would give it, together with the entry that a later write can be made to depend on:
    /// also one that has expired or names nothing.
    package func observe(
        _ key: Digest,
        now: Timestamp
    ) throws(CacheError) -> (stored: StoredEntry?, value: Data?) {
        try observe(key, now) { (content) throws(CacheError) in
            switch try objects.read(content, alwaysChecked: true) {
            case .found(let data): return data
            case .missing: return nil
            case .unusable:
                // Away with it, or the write that follows would take it for the bytes that it is named by.
                counters.add(.corruptObject)
                _ = try objects.deleteIfCorrupt(
                    content.digest,
                    expecting: content.length,
                    patience: Stripes.writerPatience
                )
                return nil
            }
        }
    }

    /// The same without reading the value.
    package func observePresence(
        of key: Digest,
        now: Timestamp
    ) throws(CacheError) -> (stored: StoredEntry?, isPresent: Bool) {
        let (stored, isPresent) = try observe(key, now) { (content) throws(CacheError) in
            try objects.isPresent(content)
        }
        return (stored, isPresent ?? false)
    }

    private func observe<Value>(
        _ key: Digest,
        _ now: Timestamp,
        _ read: (Content) throws(CacheError) -> Value?
    ) throws(CacheError) -> (stored: StoredEntry?, value: Value?) {
        guard let stored = try entries.read(key) else { return (nil, nil) }
        // Where the entry changes meanwhile, a write that depends on it fails, and it is observed anew.
        guard let record = stored.record, !record.isNothing, try freshness(of: stored, key, now) == .fresh
        else {
            return (stored, nil)
        }
        return (stored, try read(record.content))
    }

    /// When it was noted that there is no value for `key`, where that still counts; nil: it does not, or there is one.
    ///
    /// One system call, none for most keys that have no entry.
    package func nothing(for key: Digest, now: Timestamp) throws(CacheError) -> Timestamp? {
        if control.rulesOut(key) { return nil }
        guard let entry = try present(key, now, false, nil), entry.record.isNothing else { return nil }
        return entry.record.created
    }

    /// What a get of `key` would come across at `now`; nil: there is no entry.
    ///
    /// Doesn't count as an access and doesn't read the value.
    ///
    /// Three system calls.
    package func explain(_ key: Digest, now: Timestamp) throws(CacheError) -> EntryExplanation? {
        var previous: [UInt8]?
        while true {
            guard let status = try directory.status(of: key, .entries), let stored = try entries.read(key)
            else { return nil }
            var explanation = EntryExplanation(stored: stored, accessed: status.accessed)
            guard let record = stored.record,
                stored.freshness(at: now, accessed: status.accessed) != .expired
            else { return explanation }
            explanation.objectLength = try parts.object(record.content.digest)?.size
            // As a get does: the record may have been overwritten, and the object swept, between the two looks.
            if explanation.objectLength != nil || previous == stored.bytes { return explanation }
            previous = stored.bytes
        }
    }

    /// How many entries were used longer ago than that of `key`, and how many there are; nil: there is no such
    /// entry.
    ///
    /// - Complexity: O(*n*) in entries: two system calls for each. Memory: the names of one shard.
    package func evictionRank(
        of key: Digest,
        now: Timestamp
    ) throws(CacheError) -> (usedLongerAgo: Int, entries: Int)? {
        guard let own = try explain(key, now: now), let record = own.stored.record else { return nil }
        let lastUse = record.lastUse(accessed: own.accessed, now: now)
        var (before, count) = (0, 0)
        for shard in 0..<StoreLayout.shardCount {
            var listing = StoreParts.Listing()
            guard let directory = try parts.list(.entries, shard: shard, into: &listing) else { continue }
            for digest in listing.digests {
                guard let (bytes, status) = try parts.entry(digest, in: directory),
                    let record = RecordCodec.decode(bytes, for: digest)
                else { continue }
                count += 1
                if record.lastUse(accessed: status.accessed, now: now) < lastUse { before += 1 }
            }
        }
        return (before, count)
    }
}
