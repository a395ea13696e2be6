// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

extension CacheCore {
    /// Stores `bytes` on disk, and keeps in memory, if there is a memory tier, what `held` makes of the record.
    func publish(
        _ bytes: Span<UInt8>,
        _ key: Digest,
        _ record: Record,
        _ room: RoomTerms = RoomTerms(),
        _ held: (Record) -> HeldItem
    ) throws(CacheError) {
        let generation = try describingFailures { (store) throws(CacheError) in
            try store.put(bytes, for: key, record, room)
        }
        // Made only where it can be kept: it costs two allocations.
        if memory != nil, let generation {
            hold(held(record), generation, until: record.heldUntil, of: store)
        }
    }

    /// Publishes a put that nobody waits for; a failure is reported as an event.
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
            guard memory != nil, let generation else { return }
            let held = HeldValue(
                write.data,
                key: write.key,
                record: record,
                cost: write.data.count
            )
            hold(held, generation, until: record.heldUntil, of: store)
        } catch {
            store.counters.add(.publishFailure)
            memory?.remove(write.key, cause: .invalidated)
            events.send(.publishFailed(key: write.key, error: error))
        }
    }
}
