// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

extension MemoryTier {
    /// Says what the values are copies of from now on, for `judge` to know.
    func setStore(_ store: Store) {
        let old = self.store.withLock { present in
            for number in 0..<shards.count {
                shards.withLock(at: number) { $0.store = unsafe UncountedReference(store) }
            }
            // From here on nobody looks at the one before: that is done under the shards' locks only.
            defer { present = store }
            return present
        }
        // What goes with it must not go under a lock.
        withExtendedLifetime(old) {}
    }

    /// Hits so far.
    var hits: Int {
        (0..<shards.count).reduce(0) { sum, number in sum + shards.withLock(at: number) { $0.hits } }
    }

    /// Takes back a hit that turned out to be none.
    func takeBackHit() {
        shards.withLock(at: 0) { $0.takeBackHit() }
    }
}
