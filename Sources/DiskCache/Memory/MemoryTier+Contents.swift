// SPDX-License-Identifier: Apache-2.0

import Platform

extension MemoryTier {
    /// The callers' keys of all values, each once however many forms it is held in.
    ///
    /// - Complexity: O(*n*) in the values, some of the time under the ledger's lock.
    var keys: [String] {
        let all = ledger.withLock { ledger in
            var keys: [String] = []
            keys.reserveCapacity(ledger.queues.count)
            ledger.queues.forEachOldestFirst { if $0.space == .callers { keys.append($0.key) } }
            return keys
        }
        // By their bytes: strings are equal if they are canonically equivalent, keys are not.
        var seen: Set<[UInt8]> = []
        return all.filter { seen.insert(Array($0.utf8)).inserted }
    }

    /// Whether a value of this key is held, in any form, good or not.
    func contains(_ key: String, in space: KeySpace) -> Bool {
        let name = name(of: key, in: space)
        return shards.withLock(at: Self.shard(of: name)) { $0.contains(name, key) }
    }

    /// Removes what has come to its end at `now`, though nobody asks for it, as expired.
    ///
    /// One short critical section for each shard; where something may have expired, a walk through the shard, which
    /// hits in that shard wait for.
    func removeExpired(at now: Timestamp) {
        for number in 0..<shards.count {
            let expired = shards.withLock(at: number) { $0.expired(at: now) }
            if expired.isEmpty { continue }
            change { ledger, removed in
                // Others may have removed or replaced it meanwhile.
                for item in expired where shards.withLock(at: number, { $0.remove(item) }) {
                    ledger.queues.remove(item.handle)
                    removed.append((item, .expired))
                }
            }
        }
    }
}
