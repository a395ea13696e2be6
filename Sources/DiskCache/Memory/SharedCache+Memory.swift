// SPDX-License-Identifier: Apache-2.0

public import CacheStore

extension SharedCache {
    /// What this process keeps in its own memory.
    public var memory: Memory {
        Memory(tier: core.isOwn ? core.memory : nil, valueCost: configuration.memory.valueCost)
    }

    /// The memory tier of a process.
    ///
    /// Empty, and without effect, if the cache was opened without memory.
    public struct Memory: Sendable {
        let tier: MemoryTier?
        /// What each value costs, if the configuration says so.
        let valueCost: Int?

        /// The sum of the values' costs.
        public var cost: Int { tier?.usage.cost ?? 0 }

        /// How many values it holds.
        public var count: Int { tier?.usage.count ?? 0 }

        /// The keys of what it holds, those that came first before the others, each once.
        ///
        /// Some of them may not be given out any more, because they have expired or somebody has changed them since.
        ///
        /// - Complexity: O(*n*) in the values.
        public var keys: [String] { tier?.keys ?? [] }

        /// Changes its limits.
        ///
        /// What exceeds them leaves at once. Without a count limit it is the default one for this cost limit
        /// (``CacheConfiguration/Memory/countLimit``).
        public func resize(costLimit: ByteCount, countLimit: Int? = nil) {
            var memory = CacheConfiguration.Memory(costLimit: costLimit, countLimit: countLimit)
            memory.valueCost = valueCost
            tier?.resize(to: memory.limits)
        }

        /// Empties it.
        ///
        /// What is on disk stays. What is in memory alone (``CacheConfiguration/Keeping/memoryOnly``) is gone. The
        /// other way round, `directory.collect(CollectionOptions(maximumSize: .bytes(0)))` empties the disk and leaves
        /// memory.
        public func removeAll() {
            tier?.removeAll(cause: .explicit)
        }

        /// Whether it is frozen: then it returns its values, takes in no new ones and evicts none.
        ///
        /// For phases in which a scan should leave it alone. Values that change still leave it.
        public var isFrozen: Bool {
            get { tier?.isFrozen ?? false }
            nonmutating set { tier?.isFrozen = newValue }
        }
    }
}
