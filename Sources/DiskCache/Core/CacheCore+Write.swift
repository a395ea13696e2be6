// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

extension CacheCore {
    /// Stores `bytes` on disk, and keeps in memory, if there is any, what `held` makes of the key and the record.
    func publish<Value>(
        _ bytes: Span<UInt8>,
        _ key: Digest,
        _ record: Record,
        _ form: MemoryForm,
        _ room: RoomTerms = RoomTerms(),
        _ held: (Digest, Record) -> HeldValue<Value>
    ) throws(CacheError) {
        let generation = try describingFailures { (store) throws(StoreError) in
            try store.put(bytes, for: key, record, room)
        }
        // Made only where it can be kept: it costs two allocations.
        if memory != nil { hold(held(key, record), form, generation, until: record.heldUntil) }
    }

    /// Publishes a put that nobody waits for; a failure goes to the events.
    func publish(_ write: PendingWrite) {
        let bytes = write.data.span
        let digest = write.keyDigest
        do throws(CacheError) {
            let record = write.makeRecord(of: bytes)
            let generation: Generation?
            do {
                defer { write.noteEnd() }
                generation = try describingFailures { (store) throws(StoreError) in
                    try store.put(bytes, for: digest, record) {
                        write.noteWriting(at: store.generation(of: digest))
                    }
                }
            }
            if memory == nil { return }
            let held = HeldValue(
                write.data,
                key: write.key,
                keyDigest: digest,
                record: record,
                cost: write.data.count
            )
            hold(held, .bytes, generation, until: record.heldUntil)
        } catch {
            store.counters.add(.publishFailure)
            memory?.remove(write.key, cause: .invalidated)
            events.send(.publishFailed(key: write.key, error: error))
        }
    }
}
