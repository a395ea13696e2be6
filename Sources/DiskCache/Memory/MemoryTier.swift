// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Where a value is in the memory tier.
struct MemoryPlace: Sendable, Equatable {
    var shard: Int32
    var slot: Int32
}

/// Values in this process's memory, bounded by their total cost and number.
///
/// Keys differ if their UTF-8 bytes do. All calls may come from any thread. A hit takes the lock of one of
/// 64 shards for a short moment, and makes neither a system call (unless another thread is just using the same
/// shard) nor an allocation. Everything that changes what is held, inserts, removals and evictions, is
/// done one at a time under the ledger's lock: so both limits hold exactly and at every moment, over all shards.
///
/// Locks are taken in this order: ledger, then one shard at a time. `judge` runs under a shard's lock and must
/// not call the tier; the removal callback, the values' own code and their deinit run under none.
///
/// Costs are the caller's; what the tier adds, about 300 bytes a value, is not counted.
final class MemoryTier: Sendable {
    /// What is held, and how much of it there may be.
    struct Ledger: Sendable {
        var queues = EvictionQueues<MemoryPlace>()
        var limits: MemoryLimits
        var isFrozen = false
        /// Of the value that came last.
        var serial: UInt64 = 0
    }

    private static let shardCount = 64

    let shards: LockArray<MemoryShard>
    let ledger: Locked<Ledger>
    private let seed = HashSeed()
    /// Keeps alive what the shards look at.
    let store = Locked<Store?>(nil)
    private let onRemoval: (@Sendable (MemoryRemoval) -> Void)?

    /// An empty tier.
    ///
    /// `onRemoval` is told of every value that leaves, on the thread that made it leave, with no lock held,
    /// in no certain order between threads; nil costs nothing.
    init(limits: MemoryLimits, onRemoval: (@Sendable (MemoryRemoval) -> Void)? = nil) {
        shards = LockArray(count: Self.shardCount) { MemoryShard() }
        ledger = Locked(Ledger(limits: limits))
        self.onRemoval = onRemoval
    }

    /// The value of this key and form, where at `now` it may be given out without a judgement.
    ///
    /// `now` may be late by what the coarse clock is. No allocation and no system call.
    @inline(__always)
    func settledValue(forKey key: String, _ form: MemoryForm, at now: Timestamp) -> MemoryFinding {
        let bytes = KeyBytes(key, seed)
        return shards.withLock(at: Self.shard(of: bytes.hash)) { $0.settled(bytes, key, form, at: now) }
    }

    /// The value of this key and form, if there is one and `judge` finds that it may be given out.
    ///
    /// What is found expired or invalidated is removed. `judge` gets the store that was set last, and can change
    /// the stamp, to say when the next access is due. No allocation and no system call on a hit.
    func value(
        forKey key: String,
        form: MemoryForm = .bytes,
        judge: (UncountedReference<Store>?, inout MemoryStamp) -> MemoryVerdict
    ) -> (any MemoryItem)? {
        let bytes = KeyBytes(key, seed)
        var verdict = MemoryVerdict.valid
        var serial: UInt64 = 0
        var isFound = false
        let item: (any MemoryItem)? = shards.withLock(at: Self.shard(of: bytes.hash)) { shard in
            guard let number = shard.find(bytes, key, form) else { return nil }
            verdict = shard.judge(number) { store, details in
                serial = details.serial
                return judge(store, &details.stamp)
            }
            isFound = true
            return verdict == .valid ? shard.hit(number) : nil
        }
        if !isFound || item != nil { return item }
        removeValue(
            forKey: key,
            form,
            bytes,
            serial: serial,
            cause: verdict == .expired ? .expired : .invalidated
        )
        return nil
    }

    /// Holds a value, in place of what was held for this key and form.
    ///
    /// Makes room first. A value that is not admitted still takes the old one's place: nothing is held then.
    /// A negative cost counts as 0. `isPlain` says of an item that it can't be discarded; else that is found out,
    /// which takes as long as all the rest.
    @discardableResult
    func insert(
        _ item: any MemoryItem,
        forKey key: String,
        form: MemoryForm = .bytes,
        cost: Int,
        stamp: MemoryStamp,
        isPlain: Bool = false
    ) -> MemoryAdmission {
        let newcomer = Newcomer(
            item: item,
            key: key,
            form: form,
            bytes: KeyBytes(key, seed),
            cost: max(0, cost),
            stamp: stamp,
            isDiscardable: !isPlain && item is any DiscardableItem
        )
        var removed: [MemoryRemoval] = []
        let admission = ledger.withLock { ledger in admit(newcomer, &ledger, &removed) }
        report(removed)
        return admission
    }

    /// Removes all forms of a key's value.
    ///
    /// One short critical section where none is held.
    func remove(_ key: String, cause: RemovalCause = .explicit) {
        let bytes = KeyBytes(key, seed)
        let number = Self.shard(of: bytes.hash)
        guard shards.withLock(at: number, { !$0.findAll(bytes, key).isEmpty }) else { return }
        var removed: [MemoryRemoval] = []
        ledger.withLock { ledger in
            for slot in shards.withLock(at: number, { $0.findAll(bytes, key) }) {
                take(Self.place(bytes.hash, slot), &ledger, cause, &removed)
            }
        }
        report(removed)
    }

    /// Has the next use of each value noted on disk by `moment`, where it was to be later.
    ///
    /// Each shard's lock is held for a walk through its values.
    func advanceAccesses(to moment: Timestamp) {
        for shard in 0..<Self.shardCount { shards.withLock(at: shard) { $0.advanceAccesses(to: moment) } }
    }

    /// Removes everything, and forgets what was evicted before.
    func removeAll(cause: RemovalCause = .explicit) {
        let removed = ledger.withLock { ledger in
            var removed: [MemoryRemoval] = []
            ledger.queues.forEachOldestFirst { place, cost in
                guard let content = clear(place) else { return }
                removed.append(MemoryRemoval(content, cost: cost, cause: cause))
            }
            for number in 0..<shards.count { shards.withLock(at: number) { $0.removeAll() } }
            ledger.queues.removeAll()
            return removed
        }
        report(removed)
    }

    /// How much is held.
    var usage: (cost: Int, count: Int) {
        ledger.withLock { ($0.queues.cost, $0.queues.count) }
    }

    /// How much may be held.
    var limits: MemoryLimits {
        ledger.withLock { $0.limits }
    }

    // MARK: Changes, under the ledger's lock

    /// Takes out the value at `place`, by then out of the queues too.
    func clear(
        _ place: MemoryPlace
    ) -> (details: MemoryShard.Details, item: any MemoryItem, frequency: UInt8)? {
        shards.withLock(at: Int(place.shard)) { $0.clear(Int(place.slot)) }
    }

    /// Takes out the value at `place`, and from the queues; gives the queue that it was in and its counter.
    @discardableResult
    func take(
        _ place: MemoryPlace,
        _ ledger: inout Ledger,
        _ cause: RemovalCause,
        _ removed: inout [MemoryRemoval]
    ) -> MemoryShard.Standing? {
        guard let content = clear(place) else { return nil }
        let (queue, cost) = ledger.queues.remove(content.details.handle)
        removed.append(MemoryRemoval(content, cost: cost, cause: cause))
        return MemoryShard.Standing(queue: queue, frequency: content.frequency)
    }

    /// Lets go of values until no more is held than this.
    func evict(
        toCost cost: Int,
        count: Int,
        _ ledger: inout Ledger,
        pressure: Bool = false,
        _ removed: inout [MemoryRemoval]
    ) {
        while true {
            let isCostly = ledger.queues.cost > cost
            guard isCostly || ledger.queues.count > count else { return }
            let victim = ledger.queues.evict(for: isCostly ? .cost : .count) { place, change in
                exchangeFrequency(at: place, change)
            }
            guard let (place, cost) = victim, let content = clear(place) else { return }
            let cause: RemovalCause = pressure ? .pressure : isCostly ? .cost : .count
            removed.append(MemoryRemoval(content, cost: cost, cause: cause))
        }
    }

    private func exchangeFrequency(at place: MemoryPlace, _ change: (UInt8) -> UInt8) -> UInt8 {
        shards.withLock(at: Int(place.shard)) { shard in
            shard.update(Int(place.slot)) { slot, _ in
                let old = slot.frequency
                slot.frequency = change(old)
                return old
            }
        }
    }

    private func admit(
        _ newcomer: Newcomer,
        _ ledger: inout Ledger,
        _ removed: inout [MemoryRemoval]
    ) -> MemoryAdmission {
        let (bytes, number) = (newcomer.bytes, Self.shard(of: newcomer.bytes.hash))
        let (old, isFull) = shards.withLock(at: number) { shard in
            (shard.find(bytes, newcomer.key, newcomer.form), shard.isFull)
        }
        // A value that is replaced stays in its queue: being written is no reason to lose what it has earned.
        let standing = old.flatMap { take(Self.place(bytes.hash, $0), &ledger, .replaced, &removed) }
        if ledger.isFrozen { return .frozen }
        let limits = ledger.limits
        guard newcomer.cost <= limits.largestCost, limits.count > 0, !isFull else { return .oversized }
        evict(toCost: limits.cost - newcomer.cost, count: limits.count - 1, &ledger, &removed)
        ledger.serial += 1
        let serial = ledger.serial
        let slot = shards.withLock(at: number) { $0.nextSlot }
        let handle = ledger.queues.insert(
            Self.place(bytes.hash, slot),
            fingerprint: bytes.hash ^ newcomer.form.fingerprint,
            cost: newcomer.cost,
            queue: standing?.queue
        )
        let details = MemoryShard.Details(
            hash: bytes.hash,
            key: newcomer.key,
            form: newcomer.form,
            stamp: newcomer.stamp,
            serial: serial,
            handle: handle,
            isDiscardable: newcomer.isDiscardable
        )
        let content = MemoryShard.Content(
            bytes: bytes,
            item: newcomer.item,
            frequency: standing?.frequency ?? 0,
            details: details
        )
        shards.withLock(at: number) { $0.fill(slot, with: content) }
        return .admitted
    }

    /// Removes the value that was found not to be valid, unless another one took its place.
    private func removeValue(
        forKey key: String,
        _ form: MemoryForm,
        _ bytes: KeyBytes,
        serial: UInt64,
        cause: RemovalCause
    ) {
        var removed: [MemoryRemoval] = []
        ledger.withLock { ledger in
            let number = shards.withLock(at: Self.shard(of: bytes.hash)) { shard -> Int? in
                guard let number = shard.find(bytes, key, form),
                    shard.update(number, { $1.serial }) == serial
                else { return nil }
                return number
            }
            if let number { take(Self.place(bytes.hash, number), &ledger, cause, &removed) }
        }
        report(removed)
    }

    // MARK: Places

    /// A value on its way in.
    private struct Newcomer {
        let item: any MemoryItem
        let key: String
        let form: MemoryForm
        let bytes: KeyBytes
        let cost: Int
        let stamp: MemoryStamp
        let isDiscardable: Bool
    }

    private static func shard(of hash: UInt64) -> Int {
        Int(hash >> 58)
    }

    private static func place(_ hash: UInt64, _ slot: Int) -> MemoryPlace {
        MemoryPlace(shard: Int32(hash >> 58), slot: Int32(slot))
    }

    /// Tells of what left; the values go when this returns.
    func report(_ removed: [MemoryRemoval]) {
        guard let onRemoval else { return }
        for removal in removed { onRemoval(removal) }
    }
}
