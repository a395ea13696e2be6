// SPDX-License-Identifier: Apache-2.0

public import CacheStore

extension SharedCache {
    /// The values that this process keeps in its own memory.
    public var memory: Memory {
        Memory(tier: core.isOwn ? core.memory : nil, valueCost: configuration.memory.valueCost)
    }

    /// The memory tier of a process.
    ///
    /// If the cache was opened without memory, the tier is empty, and changes have no effect.
    public struct Memory: Sendable {
        let tier: MemoryTier?
        /// The cost of each value, if configured.
        let valueCost: Int?

        /// The sum of the values' costs.
        public var cost: Int { tier?.usage.cost ?? 0 }

        /// The number of values.
        public var count: Int { tier?.usage.count ?? 0 }

        /// The keys of the values, each once, in the order of the two eviction queues: the oldest first in each.
        ///
        /// Gets may no longer return some of the values, because they have expired or were changed since.
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
        /// Values on disk stay. Values that are only in memory (``CacheConfiguration/Keeping/memoryOnly``) are lost.
        /// Conversely, `directory.collect(CollectionOptions(maximumSize: .bytes(0)))` empties the disk and leaves memory
        /// unchanged.
        public func removeAll() {
            tier?.removeAll(cause: .explicit)
        }

        /// Whether the tier is frozen: it then returns its values, admits no new ones and evicts none.
        ///
        /// Freeze the tier while a scan must not displace its values. Values that change are still removed.
        public var isFrozen: Bool {
            get { tier?.isFrozen ?? false }
            nonmutating set { tier?.isFrozen = newValue }
        }
    }
}
