// SPDX-License-Identifier: Apache-2.0

import Platform

extension MemoryTier {
    /// Whether the tier is frozen.
    ///
    /// It then gives out what it holds, and removes what is found expired or invalidated or is asked to be removed,
    /// but admits nothing; so nothing is evicted either, unless the limits are lowered or memory is short.
    var isFrozen: Bool {
        get { ledger.withLock { $0.isFrozen } }
        set { ledger.withLock { $0.isFrozen = newValue } }
    }

    /// Sets other limits, and evicts at once what is beyond them.
    func resize(to limits: MemoryLimits) {
        var removed: [MemoryRemoval] = []
        ledger.withLock { ledger in
            ledger.limits = limits
            evict(toCost: limits.cost, count: limits.count, &ledger, &removed)
        }
        report(removed)
    }

    /// Gives memory back, until only this part of the cost is left that is held now.
    ///
    /// Discards first what can be discarded, the oldest before the others, and evicts if that does not do. Where
    /// nothing costs anything, it is the number of values that shrinks.
    func shrink(to fraction: Double) {
        let held = usage
        let fraction = max(0, min(1, fraction))
        let cost = Int(Double(held.cost) * fraction)
        let count = held.cost == 0 ? Int(Double(held.count) * fraction) : .max
        for candidate in discardable() {
            if usage.cost <= cost { break }
            discard(candidate)
        }
        var removed: [MemoryRemoval] = []
        ledger.withLock { ledger in
            evict(toCost: cost, count: count, &ledger, pressure: true, &removed)
        }
        report(removed)
    }

    /// A value that could be discarded, as it was when it was looked for.
    private struct Candidate {
        let place: MemoryPlace
        let serial: UInt64
        let item: (any MemoryItem)?
    }

    private func discardable() -> [Candidate] {
        ledger.withLock { ledger in
            var candidates: [Candidate] = []
            ledger.queues.forEachOldestFirst { place, _ in
                let candidate = shards.withLock(at: Int(place.shard)) { shard in
                    shard.update(Int(place.slot)) { slot, details in
                        details.isDiscardable
                            ? Candidate(place: place, serial: details.serial, item: slot.item) : nil
                    }
                }
                if let candidate { candidates.append(candidate) }
            }
            return candidates
        }
    }

    private func discard(_ candidate: Candidate) {
        guard let (item, cost) = (candidate.item as? any DiscardableItem)?.discarded() else { return }
        let isDiscardable = item is any DiscardableItem
        ledger.withLock { ledger in
            let handle = shards.withLock(at: Int(candidate.place.shard)) { shard in
                let number = Int(candidate.place.slot)
                // It may have left meanwhile: no lock was held while it made its lesser form.
                guard shard.item(at: number, serial: candidate.serial) != nil else {
                    return nil as EvictionQueues<MemoryPlace>.Handle?
                }
                let handle = shard.update(number) { $1.handle }
                guard ledger.queues.cost(of: handle) > cost else { return nil }
                // The old one lives on in the candidate: it must not go under the lock.
                shard.discard(number, for: item, isDiscardable: isDiscardable)
                return handle
            }
            if let handle { ledger.queues.setCost(max(0, cost), of: handle) }
        }
    }
}
