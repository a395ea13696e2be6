// SPDX-License-Identifier: Apache-2.0

import Platform

extension MemoryTier {
    /// Whether the tier is frozen.
    ///
    /// It then returns what it holds, and removes what has expired, was invalidated, or is asked to be removed,
    /// but admits nothing. So nothing is evicted either, unless the limits are lowered or memory is short.
    var isFrozen: Bool {
        get { ledger.withLock { $0.isFrozen } }
        set { ledger.withLock { $0.isFrozen = newValue } }
    }

    /// Sets other limits, and at once evicts what exceeds them.
    func resize(to limits: MemoryLimits) {
        change { ledger, removed in
            ledger.limits = limits
            evict(toCost: limits.cost, count: limits.count, &ledger, &removed)
        }
    }

    /// Gives memory back, until only this part of the present cost is left.
    ///
    /// Discards first what can be discarded, the oldest first, and evicts if that is not enough. If nothing
    /// costs anything, the number of values shrinks instead.
    ///
    /// - Parameter discarding: whether values may lose a part; else they only go as a whole.
    func shrink(to fraction: Double, discarding: Bool = true) {
        let held = usage
        let fraction = max(0, min(1, fraction))
        let cost = Int(Double(held.cost) * fraction)
        let count = held.cost == 0 ? Int(Double(held.count) * fraction) : .max
        // Let go of one by one: what was discarded is free at once.
        var items = discarding ? decoded() : []
        while usage.cost > cost, let item = items.popLast() { discard(item) }
        change { ledger, removed in
            evict(toCost: cost, count: count, &ledger, pressure: true, &removed)
        }
    }

    /// All values that are not bytes, of which some may be discarded; the oldest last.
    private func decoded() -> [HeldItem] {
        ledger.withLock { ledger in
            var items: [HeldItem] = []
            ledger.queues.forEachOldestFirst { if $0.form != HeldItem.bytes { items.append($0) } }
            items.reverse()
            return items
        }
    }

    private func discard(_ item: HeldItem) {
        guard let lesser = item.discarded(), lesser.cost < item.cost else { return }
        ledger.withLock { ledger in
            // It may have left meanwhile: no lock was held while it made its lesser form.
            let isReplaced = shards.withLock(at: Self.shard(of: item.name)) { $0.replace(item, by: lesser) }
            if isReplaced { ledger.queues.replace(item.handle, by: lesser, cost: lesser.cost) }
        }
    }
}
