// SPDX-License-Identifier: Apache-2.0

import CacheStore

extension SharedCache {
    /// What this process holds of the cache in its own memory.
    public var memory: Memory { Memory(tier: core.memory) }

    /// The memory tier of a process: without effect and empty where the cache was opened without memory.
    public struct Memory: Sendable {
        let tier: MemoryTier?

        /// The sum of the values' costs.
        public var cost: Int { tier?.usage.cost ?? 0 }

        /// How many values it holds.
        public var count: Int { tier?.usage.count ?? 0 }

        /// Gives it other limits; what is over them leaves at once.
        public func resize(costLimit: ByteCount, countLimit: Int? = nil) {
            let limits = CacheConfiguration.Memory(costLimit: costLimit, countLimit: countLimit).limits
            tier?.resize(to: limits)
        }

        /// Empties it; what is on disk stays.
        public func removeAll() {
            tier?.removeAll(cause: .explicit)
        }

        /// Whether it keeps what it has: it goes on answering, but takes nothing new and evicts nothing.
        ///
        /// For phases in which a scan should leave it alone. Values that have changed still leave.
        public var isFrozen: Bool {
            get { tier?.isFrozen ?? false }
            nonmutating set { tier?.isFrozen = newValue }
        }
    }
}
