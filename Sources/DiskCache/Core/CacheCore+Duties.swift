// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

extension CacheCore {
    /// What the janitor's thread and closing do for this cache.
    func duties(_ writeBehind: WriteBehind) -> JanitorDuties {
        JanitorDuties(
            store: { self.store },
            now: { self.now },
            everySecond: { self.flushAccesses() },
            reopen: { () throws(StoreError) in try self.reopen() },
            swept: { self.events.send(.swept(GCReport($0, isDryRun: false))) },
            failed: { self.events.send(.sweepFailed(CacheError($0))) },
            shut: { self.close() },
            drain: { writeBehind.flush(until: $0) },
            flush: {
                self.flushAccesses()
                self.events.finish()
            }
        )
    }
}
