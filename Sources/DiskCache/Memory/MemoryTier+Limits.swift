// SPDX-License-Identifier: Apache-2.0

import Platform

extension MemoryTier {
    /// Whether the tier is frozen.
    ///
    /// A frozen tier admits no values. It still returns its values, and removes those that have expired, were invalidated
    /// or are removed explicitly. It evicts values only if the limits are lowered or memory is short.
    var isFrozen: Bool {
        get { ledger.withLock { $0.isFrozen } }
        set { ledger.withLock { $0.isFrozen = newValue } }
    }

    /// Changes the limits, and evicts values at once until the rest is within them.
    func resize(to limits: MemoryLimits) {
        change { ledger, removed in
            ledger.limits = limits
            evict(toCost: limits.cost, count: limits.count, &ledger, &removed)
        }
    }

    /// Releases memory until at most this fraction of the present cost remains.
    ///
    /// Discards parts of values first, the oldest values first, and evicts whole values if that is not enough. If all
    /// costs are 0, the number of values shrinks instead.
    ///
    /// - Parameter discarding: whether parts of values may be discarded; if not, values are only evicted as a whole.
    func shrink(to fraction: Double, discarding: Bool = true) {
        let held = usage
        let fraction = max(0, min(1, fraction))
        let cost = Int(Double(held.cost) * fraction)
        let count = held.cost == 0 ? Int(Double(held.count) * fraction) : .max
        // The items are released one by one, so that discarded parts are freed at once.
        var items = discarding ? decoded() : []
        while usage.cost > cost, let item = items.popLast() { discard(item) }
        change { ledger, removed in
            evict(toCost: cost, count: count, &ledger, pressure: true, &removed)
        }
    }

    /// Returns all values that are not bytes, the oldest last; only such values can have discardable parts.
    private func decoded() -> [MemoryEntry] {
        ledger.withLock { ledger in
            var items: [MemoryEntry] = []
            ledger.queues.forEachOldestFirst { if $0.form != MemoryEntry.bytes { items.append($0) } }
            items.reverse()
            return items
        }
    }

    private func discard(_ item: MemoryEntry) {
        guard let lesser = item.discarded(), lesser.cost < item.cost else { return }
        ledger.withLock { ledger in
            // The item may have been removed meanwhile: no lock was held while its smaller form was created.
            let isReplaced = shards.withLock(at: Self.shard(of: item.name)) { $0.replace(item, by: lesser) }
            if isReplaced { ledger.queues.replace(item.handle, by: lesser, cost: lesser.cost) }
        }
    }
}
