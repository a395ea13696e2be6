// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform
import Synchronization

/// Values in this process's memory, bounded by their total cost and number.
///
/// Keys differ if their UTF-8 bytes do. Any thread may make any call. A hit takes the lock of one of 64 shards for a
/// short moment; it makes no allocation, and no system call unless another thread is using the same shard. All changes
/// (inserts, removals and evictions) happen one at a time under the ledger's lock, so both limits hold exactly at every
/// moment, over all shards.
///
/// Locks are taken in this order: ledger, then one shard at a time. The `judge` argument of a lookup runs under a shard's
/// lock and must not call the tier. The removal callback, the values' own code and their deinitializers run under no
/// lock.
///
/// The caller sets the cost of each value; the tier's own memory, about 300 bytes per value, is not counted.
final class MemoryTier: Sendable {
    /// The eviction order of the held values, and their limits.
    struct Ledger: Sendable {
        var queues = EvictionQueues<MemoryEntry>()
        var limits: MemoryLimits
        var isFrozen = false
    }

    /// The removed items and their causes.
    typealias Removals = [(item: MemoryEntry, cause: MemoryRemovalCause)]

    private static let shardCount = 64

    let shards: LockArray<MemoryShard>
    let ledger: Locked<Ledger>
    private let seed = HashSeed()
    /// Keeps alive the store that the shards use.
    private let store = Locked<Store?>(nil)
    private let onRemoval: (@Sendable (MemoryEntry, MemoryRemovalCause) -> Void)?
    /// Hits that must be recorded on disk.
    let dueAccesses = Locked(DueAccesses())
    /// The maximum age of held values, in nanoseconds since they were stored; `Int64.max` for no limit.
    let longestAge = Atomic<Int64>(.max)

    /// Creates an empty tier.
    ///
    /// `onRemoval` is called for every removed value, on the thread that removed it, with no lock held; the order of
    /// calls on different threads is undefined. If it is nil, removals cost nothing extra.
    init(limits: MemoryLimits, onRemoval: (@Sendable (MemoryEntry, MemoryRemovalCause) -> Void)? = nil) {
        shards = LockArray(count: Self.shardCount) { MemoryShard() }
        ledger = Locked(Ledger(limits: limits))
        self.onRemoval = onRemoval
    }

    /// Sets the store whose values the tier holds copies of from now on.
    func setStore(_ store: Store) {
        let old = self.store.withLock { present in
            for number in 0..<shards.count {
                shards.withLock(at: number) { $0.store = unsafe UncountedReference(store) }
            }
            // Only code under a shard's lock uses the tier's store, so no thread uses the old one from here on.
            defer { present = store }
            return present
        }
        // The old store's deinitializer must not run under a lock.
        withExtendedLifetime(old) {}
    }

    // MARK: Finding

    /// Returns the value of this key and form, if one may be returned at `now`.
    ///
    /// `now` may lag as the coarse clock does. If more than the value's generation must be checked, or if it has changed,
    /// `judge` returns why the value may not be returned (nil if it may); it can change the value's validity. A value
    /// that may not be returned is removed. A hit makes no allocation and no system call.
    @inline(__always)
    func find(
        _ key: String,
        in space: KeySpace,
        _ form: ObjectIdentifier = MemoryEntry.bytes,
        at now: Timestamp,
        judge: (MemoryEntry) -> MemoryRemovalCause?
    ) -> MemoryEntry? {
        let name = name(of: key, in: space)
        // The caller keeps the tier alive; `self`, used after the lock, would be reference-counted for each hit.
        let tier = unsafe UncountedReference(self)
        let found = shards.withLock(at: Self.shard(of: name)) {
            $0.find(name, key, form, at: now, judge: judge)
        }
        guard let found else { return nil }
        guard let cause = found.cause else { return found.item }
        tier.use { $0.remove(found.item, cause) }
        return nil
    }

    /// The number of hits that checked only the generation.
    var hits: Int {
        (0..<shards.count).reduce(0) { sum, number in sum + shards.withLock(at: number) { $0.hits } }
    }

    /// The total cost and the number of held values.
    var usage: (cost: Int, count: Int) {
        ledger.withLock { ($0.queues.cost, $0.queues.count) }
    }

    // MARK: Keeping

    /// Holds a value, in place of the one that has the same key and form.
    ///
    /// Evicts other values first if they would exceed a limit. An item can be added only once.
    ///
    /// - Parameter isOnly: whether the value is stored nowhere else; it is then admitted even if a hit is unlikely.
    /// - Returns: false if the value was not admitted; the tier then holds no value of its key and form.
    @discardableResult
    func keep(_ item: MemoryEntry, by validity: MemoryValidity, isOnly: Bool = false) -> Bool {
        item.name = name(of: item.key, in: item.space)
        item.validity = validity
        return change { ledger, removed in admit(item, isOnly: isOnly, &ledger, &removed) }
    }

    /// Holds a value whose validity observes this age limit, in nanoseconds, or a lower limit that was set meanwhile.
    func keep(_ item: MemoryEntry, by validity: MemoryValidity, isOnly: Bool, upToAge age: Int64) {
        keep(item, by: validity, isOnly: isOnly)
        // If the limit was lowered meanwhile, the scan for the new limit may have missed this value.
        let present = longestAge.load(ordering: .sequentiallyConsistent)
        if present < age { endValues(at: present) }
    }

    private func admit(
        _ item: MemoryEntry,
        isOnly: Bool,
        _ ledger: inout Ledger,
        _ removed: inout Removals
    ) -> Bool {
        let number = Self.shard(of: item.name)
        var queue: EvictionQueues<MemoryEntry>.Queue?
        if let old = shards.withLock(at: number, { $0.take(item.name, item.key, item.form) }) {
            // The item takes over the queue and the counter of the one that it replaces: a write does not make a key less
            // used.
            queue = ledger.queues.remove(old.handle)
            item.frequency.store(old.frequency.load(ordering: .relaxed), ordering: .relaxed)
            removed.append((old, .replaced))
        }
        let limits = ledger.limits
        guard !ledger.isFrozen, item.cost <= limits.largestCost, limits.count > 0 else { return false }
        let fingerprint = item.name.hash ^ UInt64(UInt(bitPattern: item.form))
        let (cost, count) = (
            limits.cost - item.cost, min(limits.count, EvictionQueues<MemoryEntry>.capacity) - 1
        )
        if queue == nil, !isOnly, ledger.queues.cost > cost || ledger.queues.count > count {
            guard ledger.queues.admits(fingerprint) else { return false }
        }
        evict(toCost: cost, count: count, &ledger, &removed)
        item.handle = ledger.queues.insert(item, fingerprint: fingerprint, cost: item.cost, queue: queue)
        shards.withLock(at: number) { $0.add(item) }
        return true
    }

    /// Makes the next access to each value due for recording on disk at `moment`, if it was due later.
    ///
    /// Holds each shard's lock while it scans the shard's values.
    func advanceAccesses(to moment: Timestamp) {
        for shard in 0..<Self.shardCount { shards.withLock(at: shard) { $0.advanceAccesses(to: moment) } }
    }

    /// Limits the age of each value, in nanoseconds.
    ///
    /// Scans all values if the limit is lower than before.
    func limitAge(to age: Int64) {
        if age < longestAge.exchange(age, ordering: .sequentiallyConsistent) { endValues(at: age) }
    }

    private func endValues(at age: Int64) {
        for shard in 0..<Self.shardCount { shards.withLock(at: shard) { $0.limitAge(to: age) } }
    }

    // MARK: Dropping

    /// Removes all forms of a key's value.
    ///
    /// Takes one short critical section if no value of the key is held.
    func remove(_ key: String, in space: KeySpace, cause: MemoryRemovalCause = .explicit) {
        let name = name(of: key, in: space)
        let number = Self.shard(of: name)
        guard shards.withLock(at: number, { $0.contains(name, key) }) else { return }
        change { ledger, removed in
            while let item = shards.withLock(at: number, { $0.take(name, key, nil) }) {
                ledger.queues.remove(item.handle)
                removed.append((item, cause))
            }
        }
    }

    /// Removes a value that was found invalid, unless it was removed meanwhile.
    @inline(never)
    private func remove(_ item: MemoryEntry, _ cause: MemoryRemovalCause) {
        change { ledger, removed in
            guard shards.withLock(at: Self.shard(of: item.name), { $0.remove(item) }) else { return }
            ledger.queues.remove(item.handle)
            removed.append((item, cause))
        }
    }

    /// Removes all values, and forgets which keys were evicted before.
    func removeAll(cause: MemoryRemovalCause = .explicit) {
        change { ledger, removed in
            ledger.queues.forEachOldestFirst { removed.append(($0, cause)) }
            for number in 0..<shards.count { shards.withLock(at: number) { $0.removeAll() } }
            ledger.queues = EvictionQueues()
        }
    }

    /// Evicts values until the rest has at most this total cost and number; runs under the ledger's lock.
    func evict(
        toCost cost: Int,
        count: Int,
        _ ledger: inout Ledger,
        pressure: Bool = false,
        _ removed: inout Removals
    ) {
        while true {
            let isCostly = ledger.queues.cost > cost
            guard isCostly || ledger.queues.count > count else { return }
            let victim = ledger.queues.evict(for: isCostly ? .cost : .count) { item, change in
                let old = item.frequency.load(ordering: .relaxed)
                item.frequency.store(change(old), ordering: .relaxed)
                return old
            }
            guard let victim else { return }
            shards.withLock(at: Self.shard(of: victim.name)) { _ = $0.remove(victim) }
            removed.append((victim, pressure ? .pressure : isCostly ? .cost : .count))
        }
    }

    /// Returns a key in the form in which the tier looks it up.
    @inline(__always)
    func name(of key: String, in space: KeySpace) -> KeyBytes {
        let name = KeyBytes(key, seed)
        return if case .callers = space { name } else { name.apart }
    }

    static func shard(of name: KeyBytes) -> Int { Int(name.hash >> 58) }

    /// Runs `body`, which changes the held values, under the ledger's lock; then counts and reports the removed values.
    ///
    /// The removed values are released when this function returns.
    func change<Result>(_ body: (inout Ledger, inout Removals) -> Result) -> Result {
        var removed: Removals = []
        let result = ledger.withLock { body(&$0, &removed) }
        if removed.isEmpty { return result }
        let counters = store.withLock { $0?.counters }
        for removal in removed {
            counters?.add(StoreCounters.Event(removal.cause))
            onRemoval?(removal.item, removal.cause)
        }
        return result
    }
}
