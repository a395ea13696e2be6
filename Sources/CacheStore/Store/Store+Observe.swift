// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import Platform

/// What an operation that depends on the present value saw.
package struct Observation: Sendable {
    /// The entry's record, also one that has expired or names nothing.
    package let stored: StoredEntry?
    /// The value, as a get would give it.
    package let value: Data?
}

extension Store {
    /// The value of `key` together with the record that a later write can be made to depend on.
    package func observe(_ key: Digest, now: Timestamp) throws(StoreError) -> Observation {
        guard let stored = try entries.read(key) else { return Observation(stored: nil, value: nil) }
        // Where the entry changes meanwhile, a write that depends on it fails, and it is observed anew.
        guard let record = stored.record, try freshness(of: stored, key, now) == .fresh else {
            return Observation(stored: stored, value: nil)
        }
        switch try objects.read(record.content, isChecked: true) {
        case .valid(let data): return Observation(stored: stored, value: data)
        case .missing: break
        case .corrupt:
            // Away with it, or the write that follows would take it for the bytes that it is named by.
            counters.add(.corruptObject)
            _ = try parts.deleteIfCorrupt(
                record.content.digest,
                expecting: record.content.length,
                patience: Stripes.writerPatience
            )
        }
        return Observation(stored: stored, value: nil)
    }

    /// The entry of `key`, and whether a get would find a value, which is not read.
    package func observePresence(
        of key: Digest,
        now: Timestamp
    ) throws(StoreError) -> (stored: StoredEntry?, isPresent: Bool) {
        guard let stored = try entries.read(key) else { return (nil, false) }
        guard let record = stored.record, try freshness(of: stored, key, now) == .fresh,
            let object = try objects.status(of: record.content.digest)
        else { return (stored, false) }
        return (stored, object.kind == .regular && object.size == Int64(record.content.length))
    }
}
