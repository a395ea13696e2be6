// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

extension CacheCore {
    /// Removes the key's value from disk, and keeps `held` in memory if there is a memory tier.
    ///
    /// As after a put on disk, memory keeps the value only if no other writer was active meanwhile.
    ///
    /// - Parameter isComputed: whether the value was computed. If so, and if there is no entry on disk, the values of the
    ///   key that other processes hold in memory stay valid.
    func keepInMemory(
        _ held: MemoryEntry,
        _ key: Digest,
        _ record: Record,
        _ terms: MemoryPolicy,
        isComputed: Bool
    ) throws(CacheError) {
        let generation = try describingFailures { (store) throws(CacheError) in
            isComputed
                ? try store.vacateIfPresent(key, name: record.key) : try store.vacate(key, name: record.key)
        }
        store.counters.add(.put)
        guard let memory, let generation else { return }
        // The generation changes only if there was an entry. If not, values that this process holds in other forms would
        // stay valid.
        if isComputed { memory.remove(held.key, in: held.space, cause: .replaced) }
        // Without an entry on disk accesses can't be recorded, so they don't extend the lifetime.
        let end = terms.end(record.expires, from: record.created)
        hold(held, by: MemoryValidity(generation: generation, heldUntil: end), of: store, isOnly: true)
    }

    /// Writes a queued put to disk; reports a failure as an event.
    func publish(_ write: PendingWrite) {
        let bytes = write.data.span
        let digest = write.keyDigest
        do throws(CacheError) {
            let record = write.makeRecord(of: bytes)
            let generation: Generation?
            do {
                defer { write.noteEnd() }
                generation = try describingFailures { (store) throws(CacheError) in
                    try store.put(bytes, for: digest, record) {
                        write.noteWriting(at: store.generation(of: digest))
                    }
                }
            }
            if write.terms.keeps == .diskOnly { memory?.remove(write.key, in: write.space, cause: .replaced) }
            guard memory != nil, let validity = write.terms.validity(of: record, writtenAt: generation) else {
                return
            }
            let held = MemoryValue(
                write.data,
                key: write.key,
                in: write.space,
                record: record,
                cost: write.terms.cost ?? write.data.count
            )
            hold(held, by: validity, of: store)
        } catch {
            store.counters.add(.publishFailure)
            memory?.remove(write.key, in: write.space, cause: .invalidated)
            events.send(.publishFailed(key: write.key, error: error))
        }
    }
}
