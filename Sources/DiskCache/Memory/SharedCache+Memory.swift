// SPDX-License-Identifier: Apache-2.0

import CacheStore

extension SharedCache {
    /// How much this process's memory tier holds: the sum of the costs, and the number of values.
    public var memoryUsage: (cost: Int, count: Int) { core.memory?.usage ?? (0, 0) }

    /// Gives the memory tier other limits; what is over them leaves at once.
    ///
    /// Without effect where the cache was opened without memory.
    public func resizeMemory(costLimit: ByteCount, countLimit: Int? = nil) {
        core.memory?.resize(to: MemoryConfiguration(costLimit: costLimit, countLimit: countLimit).limits)
    }

    /// Empties the memory tier; what is on disk stays.
    public func clearMemory() {
        core.memory?.removeAll(cause: .explicit)
    }

    /// Whether the memory tier keeps what it has: it goes on answering, but takes nothing new and evicts
    /// nothing.
    ///
    /// For phases in which a scan should leave it alone. Values that have changed still leave.
    public var isMemoryFrozen: Bool {
        get { core.memory?.isFrozen ?? false }
        set { core.memory?.isFrozen = newValue }
    }
}
