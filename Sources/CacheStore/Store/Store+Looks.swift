// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// What a get of a key would find now.
package enum EntryCondition: Sendable, Equatable {
    case hit
    /// There is no entry.
    case absent
    /// An entry without a record: a put that has just begun, or was killed.
    case unfinished
    /// A record that does not parse.
    case damagedRecord
    case stale
    case expired
    /// The object is not there.
    case objectGone
    /// The object has so many bytes, which are not those that the record promises.
    case objectOfLength(Int64)
}

/// What is known of a key, whether a get would find it or not.
package struct EntryExplanation: Sendable {
    package let condition: EntryCondition
    /// nil where there is none that parses.
    package let record: Record?
    package let accessed: Timestamp?
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
        guard let record = stored.record, try freshness(of: stored, key, now) == .fresh else {
            return (stored, nil)
        }
        return (stored, try read(record.content))
    }

    /// What a get of `key` would find at `now`, and what is known of it.
    ///
    /// Doesn't count as an access and doesn't read the value.
    ///
    /// Three system calls. An object of the right length whose bytes are damaged counts as a hit.
    package func explain(_ key: Digest, now: Timestamp) throws(CacheError) -> EntryExplanation {
        var previous: [UInt8]?
        while true {
            guard let status = try entries.status(of: key), let stored = try entries.read(key) else {
                return EntryExplanation(condition: .absent, record: nil, accessed: nil)
            }
            let accessed = status.accessed
            guard let record = stored.record else {
                let condition: EntryCondition = stored.bytes.isEmpty ? .unfinished : .damagedRecord
                return EntryExplanation(condition: condition, record: nil, accessed: accessed)
            }
            let condition = try condition(of: record, accessed: accessed, now: now)
            // As a get does: the record may have been overwritten, and the object swept, between the two looks.
            if condition != .objectGone || previous == stored.bytes {
                return EntryExplanation(condition: condition, record: record, accessed: accessed)
            }
            previous = stored.bytes
        }
    }

    private func condition(
        of record: Record,
        accessed: Timestamp,
        now: Timestamp
    ) throws(CacheError) -> EntryCondition {
        let freshness = record.freshness(at: now, accessed: accessed)
        if freshness == .expired { return .expired }
        let object = try objects.status(of: record.content.digest)
        guard let object, object.kind == .regular else { return .objectGone }
        guard object.size == Int64(record.content.length) else { return .objectOfLength(object.size) }
        return freshness == .fresh ? .hit : .stale
    }

    /// How many entries were used longer ago than that of `key`, and how many there are; nil: there is no such
    /// entry.
    ///
    /// - Complexity: O(*n*) in entries: two system calls for each. Memory: the names of one shard.
    package func evictionRank(
        of key: Digest,
        now: Timestamp
    ) throws(CacheError) -> (usedLongerAgo: Int, entries: Int)? {
        let explanation = try explain(key, now: now)
        guard let record = explanation.record, let accessed = explanation.accessed else { return nil }
        let lastUse = record.lastUse(accessed: accessed, now: now)
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
