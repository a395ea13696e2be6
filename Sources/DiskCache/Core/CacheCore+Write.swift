// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

extension CacheCore {
    /// Stores `data` on disk, and keeps it in memory in the form that `held` gives it.
    func publish<Value>(
        _ data: Data,
        _ held: HeldValue<Value>,
        _ form: MemoryForm
    ) throws(CacheError) {
        try describingFailures { (store) throws(StoreError) in
            let generation = try store.put(data.span, for: held.keyDigest, held.record)
            hold(held, form, generation, until: held.record.heldUntil)
        }
    }

    /// Publishes a put that nobody waits for; a failure goes to the events.
    func publish(_ write: PendingWrite) {
        let held = HeldValue(
            write.data,
            key: write.key,
            keyDigest: write.keyDigest,
            source: .record(write.makeRecord()),
            cost: write.data.count
        )
        do throws(CacheError) {
            try publish(write.data, held, .bytes)
        } catch {
            store.counters.add(.publishFailure)
            memory?.remove(write.key, cause: .invalidated)
            events.send(.publishFailed(key: write.key, error: error))
        }
    }
}
