// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform
import Synchronization

extension CacheCore {
    /// The verdict on a value that may be returned, at ``moment``.
    private struct Judgement {
        let stamp: MemoryStamp
        let moment: Timestamp
        /// Whether an access has to be noted.
        let isAccessDue: Bool
        /// Whether the control file shows that nobody has changed it; otherwise the record on disk must be
        /// compared.
        let isCurrent: Bool
    }

    /// The value of `key` in memory, if that is still the one that counts, and when it was found.
    ///
    /// No system call and no allocation where the directory has a control file; one call, to hold the
    /// record against the one on disk, where it has none.
    func held<Value>(
        _ key: String,
        in space: KeySpace,
        _ form: ObjectIdentifier,
        as type: Value.Type,
        mayRestore: Bool = true
    ) -> (held: HeldValue<Value>, moment: Timestamp)? {
        guard let tier else { return nil }
        // Before the tier's lock is taken: user code runs under no lock.
        let now = coarseNow
        var judgement: Judgement?
        let item = tier.use { tier in
            tier.find(key, in: space, form, at: now) { item in judge(item, now, &judgement) }
        }
        guard let item, let held = HeldValue<Value>.known(item) else { return nil }
        guard let judgement else { return (held, now) }
        return confirmed(held, judgement, mayRestore).map { ($0, now) }
    }

    /// Why a value may not be returned, if more than its generation has to be checked; nil if it may.
    @inline(never)
    private func judge(_ item: HeldItem, _ now: Timestamp, _ judgement: inout Judgement?) -> CacheEvent
        .RemovalCause?
    {
        let store = store
        let isCurrent = store.isCurrent(item.stamp.generation)
        if isCurrent == false, configuration.checksGenerations { return .invalidated }
        if isOver(item.stamp, now) || now < item.start { return .expired }
        let isAccessDue = !(now < item.stamp.accessDue)
        if isAccessDue { item.stamp.accessDue = now.advanced(byNanoseconds: store.accesses.granularity) }
        judgement = Judgement(
            stamp: item.stamp,
            moment: now,
            isAccessDue: isAccessDue,
            isCurrent: isCurrent != nil
        )
        return nil
    }

    /// The value that was judged as it may be returned: whole, and as it is on disk; nil if it may not.
    private func confirmed<Value>(
        _ held: HeldValue<Value>,
        _ judgement: Judgement,
        _ mayRestore: Bool
    ) -> HeldValue<Value>? {
        let store = store
        if !judgement.isCurrent, !isStillStored(held, in: store) {
            memory?.remove(held.key, in: held.space, cause: .invalidated)
            return nil
        }
        if judgement.isAccessDue { noteAccess(held.entryName, at: judgement.moment) }
        var whole = held
        if !held.isWhole {
            guard mayRestore, let restored = held.restored() else { return nil }
            // A frozen tier would not take it, and so lose what it has.
            if let memory, !memory.isFrozen { memory.keep(restored, by: judgement.stamp) }
            whole = restored
        }
        store.counters.add(.memoryHit)
        return whole
    }

    /// Whether the stamp's time is up.
    private func isOver(_ stamp: MemoryStamp, _ coarseNow: Timestamp) -> Bool {
        // Near the end the exact clock decides; a clock of the cache's own has no other time than the one it gave.
        if stamp.isBeforeEnd(coarseNow) { return false }
        return !((configuration.now == nil ? .now : coarseNow) < stamp.end)
    }

    var coarseNow: Timestamp {
        configuration.now.map { Timestamp($0()) } ?? .coarseNow
    }

    private func isStillStored(_ held: HeldValue<some Sendable>, in store: Store) -> Bool {
        // The get from disk that follows meets the same failure and reports it.
        (try? store.entries.read(held.entryName)?.record == held.makeRecord()) ?? false
    }

    /// Keeps a value that was just read or written.
    ///
    /// - Parameters:
    ///   - generation: the one to check it by later; nil: it is compared with the record on disk.
    ///   - isOnly: whether it is nowhere else: then it is taken in whatever the chances are that it is asked for.
    func hold(
        _ item: HeldItem,
        _ generation: Generation?,
        until end: Timestamp?,
        of store: Store,
        isOnly: Bool = false
    ) {
        guard let memory else { return }
        let now = coarseNow
        let age = followLongestAge(of: store, memory)
        let accessDue = now.advanced(byNanoseconds: store.accesses.granularity)
        var stamp = MemoryStamp(generation: generation, heldUntil: end, accessDue: accessDue)
        if age != .max {
            stamp.end = min(stamp.end, item.created.advanced(byNanoseconds: age))
            // On disk it is until the next collection.
            if !(now < stamp.end) { return }
        }
        memory.keep(item, by: stamp, isOnly: isOnly, upToAge: age)
    }

    /// Has values in memory end by the directory's present limit of age.
    ///
    /// Two loads where nothing has changed.
    func followLimits() {
        if let memory { _ = followLongestAge(of: store, memory) }
    }

    private func followLongestAge(of store: Store, _ memory: MemoryTier) -> Int64 {
        let age = store.longestAge
        if age != memory.longestAge.load(ordering: .relaxed) { memory.limitAge(to: age) }
        return age
    }

    /// Has values that have expired leave memory, though nobody asks for them.
    ///
    /// To be called about once a second. No system call.
    func dropExpired() {
        guard let memory else { return }
        memory.removeExpired(at: coarseNow)
    }

    /// Gives up some of what is in memory when the system runs short of it.
    ///
    /// A quarter, and a second later a quarter of what is left, so that a short stall costs little; three
    /// quarters at once if the kernel is about to kill processes.
    ///
    /// - Parameter pressure: evaluated only if it makes a difference.
    func relieve(_ pressure: () -> MemoryPressure) {
        guard configuration.memory.shrinksUnderPressure, let memory, memory.usage.count > 0 else { return }
        switch pressure() {
        case .none: return
        case .some: memory.shrink(to: 0.75, discarding: configuration.memory.discardsParts)
        case .critical: memory.shrink(to: 0.25, discarding: configuration.memory.discardsParts)
        }
    }
}

/// The gauge of this process, shared by its caches.
final class SystemMemory: Sendable {
    private static let own = PerProcess { SystemMemory() }

    private let gauge = MemoryGauge()

    static func pressure() -> MemoryPressure { own.value.gauge?.pressure() ?? .none }
}

extension StoreCounters.Event {
    /// What a value's leaving the memory tier counts as.
    init(_ cause: CacheEvent.RemovalCause) {
        self =
            switch cause {
            case .explicit: .memoryExplicit
            case .replaced: .memoryReplaced
            case .expired: .memoryExpired
            case .cost: .memoryCost
            case .count: .memoryCount
            case .invalidated: .memoryInvalidated
            case .pressure: .memoryPressure
            }
    }
}
