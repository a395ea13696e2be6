// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// The state of a key's entry, whether or not a get would return its value.
package struct EntryExplanation: Sendable {
    package let stored: StoredEntry
    package let accessed: Timestamp
    /// The length of the object; nil if it is missing, or was not checked because a get would not read it.
    package var objectLength: Int64?
}

/// Reads that don't count as accesses: for conditional writes, and for the state that a get would find.
extension Store {
    /// Returns the value of `key`, as a get would, and its entry for a conditional write.
    ///
    /// The entry is also returned if it has expired or stands for an absent value.
    package func observe(
        _ key: Digest,
        now: Timestamp
    ) throws(CacheError) -> (stored: StoredEntry?, value: Data?) {
        try observe(key, now) { (content) throws(CacheError) in
            switch try objects.read(content, alwaysChecked: true) {
            case .found(let data): return data
            case .missing: return nil
            case .unusable:
                // Delete the object: otherwise the next write would reuse the damaged object for the same digest.
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

    /// Returns the entry and whether its value is present, without reading the value.
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
        var entry: StoredEntry?
        for _ in 0..<Self.unpackAttempts where entry == nil {
            try unpack(key)
            let generation = packs == nil ? nil : control.generation(of: key)
            entry = try entries.read(key)
            if entry == nil, try isSettled(key, since: generation) { break }
        }
        guard let stored = entry else { return (nil, nil) }
        // If the entry changes meanwhile, a write that depends on it fails, and it is read again.
        guard let record = stored.record, !record.isNothing, try freshness(of: stored, key, now) == .fresh
        else {
            return (stored, nil)
        }
        return (stored, try read(record.content))
    }

    /// Returns when the absence of a value for `key` was recorded.
    ///
    /// Nil if it was not recorded, if that record has expired, or if there is a value. One system call; none for most keys
    /// that have no entry.
    package func nothing(for key: Digest, now: Timestamp) throws(CacheError) -> Timestamp? {
        if control.rulesOut(key) { return nil }
        // A value in a pack is no absence, whatever entry a killed process has left below it.
        if try isPacked(key) { return nil }
        guard let entry = try present(key, now, false, nil), entry.record.isNothing else { return nil }
        return entry.record.created
    }

    /// Returns the state that a get of `key` would find at `now`; nil if there is no entry.
    ///
    /// Doesn't count as an access and doesn't read the value.
    ///
    /// Three system calls.
    package func explain(_ key: Digest, now: Timestamp) throws(CacheError) -> EntryExplanation? {
        var previous: [UInt8]?
        while true {
            try unpack(key)
            let generation = packs == nil ? nil : control.generation(of: key)
            guard let status = try directory.status(of: key, .entries), let stored = try entries.read(key)
            else {
                if try isSettled(key, since: generation) { return nil }
                continue
            }
            var explanation = EntryExplanation(stored: stored, accessed: status.accessed)
            guard let record = stored.record,
                stored.freshness(at: now, accessed: status.accessed) != .expired
            else { return explanation }
            explanation.objectLength = try object(record.content.digest)?.size
            // As in a get: the record may have been overwritten, and the old object swept, between the two reads.
            if explanation.objectLength != nil || previous == stored.bytes { return explanation }
            previous = stored.bytes
        }
    }
}
