// SPDX-License-Identifier: Apache-2.0

public import CacheStore

extension SharedCache {
    /// The values that this process keeps in its own memory.
    public var memory: Memory {
        Memory(tier: core.isOwn ? core.memory : nil, valueCost: configuration.memory.valueCost)
    }

    /// The memory tier of a process.
    ///
    /// Empty, and without effect, if the cache was opened without memory.
    public struct Memory: Sendable {
        let tier: MemoryTier?
        /// The cost of each value, if configured.
        let valueCost: Int?

        /// The sum of the values' costs.
        public var cost: Int { tier?.usage.cost ?? 0 }

        /// The number of held values.
        public var count: Int { tier?.usage.count ?? 0 }

        /// The keys of the held values, each once; oldest first in each of the two eviction queues.
        ///
        /// Some values may not be returned any more, because they have expired or were changed since.
        ///
        /// - Complexity: O(*n*) in the values.
        public var keys: [String] { tier?.keys ?? [] }

        /// Changes the limits.
        ///
        /// Evicts the excess at once. Without a count limit, the default for this cost limit applies
        /// (``CacheConfiguration/Memory/countLimit``).
        public func resize(costLimit: ByteCount, countLimit: Int? = nil) {
            var memory = CacheConfiguration.Memory(costLimit: costLimit, countLimit: countLimit)
            memory.valueCost = valueCost
            tier?.resize(to: memory.limits)
        }

        /// Removes all values from memory.
        ///
        /// Values on disk stay. Values in memory alone (``CacheConfiguration/Keeping/memoryOnly``) are lost. Conversely,
        /// `directory.collect(CollectionOptions(maximumSize: .bytes(0)))` empties the disk and leaves memory.
        public func removeAll() {
            tier?.removeAll(cause: .explicit)
        }

        /// Whether the tier is frozen: it then returns its values, admits no new ones and evicts none.
        ///
        /// For phases in which a scan must not displace its values. Changed values are still removed.
        public var isFrozen: Bool {
            get { tier?.isFrozen ?? false }
            nonmutating set { tier?.isFrozen = newValue }
        }
    }
}
