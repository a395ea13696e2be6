// SPDX-License-Identifier: Apache-2.0

import Platform

extension MemoryTier {
    /// The keys of all values in the callers' key space, each once even if its value is held in several forms.
    ///
    /// - Complexity: O(*n*) in the number of values, partly under the ledger's lock.
    var keys: [String] {
        let all = ledger.withLock { ledger in
            var keys: [String] = []
            keys.reserveCapacity(ledger.queues.count)
            ledger.queues.forEachOldestFirst { if $0.space == .callers { keys.append($0.key) } }
            return keys
        }
        // Compared by their bytes: strings are equal if they are canonically equivalent, but keys only if their bytes
        // are.
        var seen: Set<[UInt8]> = []
        return all.filter { seen.insert(Array($0.utf8)).inserted }
    }

    /// Returns whether a value of this key is held, in any form, valid or not.
    func contains(_ key: String, in space: KeySpace) -> Bool {
        let name = name(of: key, in: space)
        return shards.withLock(at: Self.shard(of: name)) { $0.contains(name, key) }
    }

    /// Removes the values that have expired at `now`, without waiting for a get.
    ///
    /// Takes one short critical section for each shard. If a value of a shard may have expired, it scans the shard, and
    /// hits in that shard wait for the scan.
    func removeExpired(at now: Timestamp) {
        for number in 0..<shards.count {
            let expired = shards.withLock(at: number) { $0.expired(at: now) }
            if expired.isEmpty { continue }
            change { ledger, removed in
                // Another thread may have removed or replaced the item meanwhile.
                for item in expired where shards.withLock(at: number, { $0.remove(item) }) {
                    ledger.queues.remove(item.handle)
                    removed.append((item, .expired))
                }
            }
        }
    }
}
