// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

extension CacheCore {
    /// Removes the value on disk, and keeps `held` in memory, if there is a memory tier.
    ///
    /// As with a put on disk, it is kept only if no other writer was active meanwhile.
    ///
    /// - Parameter isComputed: whether other processes keep their values of the key in memory if there is no entry on disk.
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
        // Values that this process holds in other forms may be valid by the same generation.
        if isComputed { memory.remove(held.key, in: held.space, cause: .replaced) }
        // Accesses can't be recorded on disk, so they don't extend it.
        let end = terms.end(record.expires, from: record.created)
        hold(held, by: MemoryValidity(generation: generation, heldUntil: end), of: store, isOnly: true)
    }

    /// Publishes a queued put; reports a failure as an event.
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
