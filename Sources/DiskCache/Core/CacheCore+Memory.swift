// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform
import Synchronization

extension CacheCore {
    /// The result of a check, at ``moment``, of a value that may be returned.
    private struct Judgement {
        let validity: MemoryValidity
        let moment: Timestamp
        /// Whether an access must be recorded.
        let isAccessDue: Bool
        /// Whether the control file shows that no writer has changed the value; if not, the value's record must be
        /// compared with the one on disk.
        let isCurrent: Bool
    }

    /// Returns the value of `key` in memory and the time of the lookup; nil if memory holds no current value.
    ///
    /// If the directory has a control file, a hit takes no system call and no allocation; otherwise it takes one system
    /// call, to compare the record with the one on disk.
    func held<Value>(
        _ key: String,
        in space: KeySpace,
        _ form: ObjectIdentifier,
        as type: Value.Type,
        mayRestore: Bool = true
    ) -> (held: MemoryValue<Value>, moment: Timestamp)? {
        guard let tier else { return nil }
        // Read before the tier's lock is taken: the clock may be user code, which must run under no lock.
        let now = coarseNow
        var judgement: Judgement?
        let item = tier.use { tier in
            tier.find(key, in: space, form, at: now) { item in judge(item, now, &judgement) }
        }
        guard let item, let held = MemoryValue<Value>.known(item) else { return nil }
        guard let judgement else { return (held, now) }
        return confirmed(held, judgement, mayRestore).map { ($0, now) }
    }

    /// Checks a value for which the generation alone does not decide; returns why the value may not be returned, or nil
    /// if it may.
    @inline(never)
    private func judge(_ item: MemoryEntry, _ now: Timestamp, _ judgement: inout Judgement?)
        -> MemoryRemovalCause?
    {
        let store = store
        let isCurrent = store.isCurrent(item.validity.generation)
        if isCurrent == false, configuration.checksGenerations { return .invalidated }
        if isOver(item.validity, now) || now < item.start { return .expired }
        let isAccessDue = !(now < item.validity.accessDue)
        if isAccessDue { item.validity.accessDue = now.advanced(byNanoseconds: store.accesses.granularity) }
        judgement = Judgement(
            validity: item.validity,
            moment: now,
            isAccessDue: isAccessDue,
            isCurrent: isCurrent != nil
        )
        return nil
    }

    /// Completes the check of a value, and restores its discarded part; returns nil if the value may not be returned, or
    /// if its part can't be restored.
    private func confirmed<Value>(
        _ held: MemoryValue<Value>,
        _ judgement: Judgement,
        _ mayRestore: Bool
    ) -> MemoryValue<Value>? {
        let store = store
        if !judgement.isCurrent, !isStillStored(held, in: store) {
            memory?.remove(held.key, in: held.space, cause: .invalidated)
            return nil
        }
        if judgement.isAccessDue { noteAccess(held.entryName, at: judgement.moment) }
        var whole = held
        if !held.isWhole {
            guard mayRestore, let restored = held.restored() else { return nil }
            // Not in a frozen tier, which would drop the present value without admitting the restored one.
            if let memory, !memory.isFrozen { memory.keep(restored, by: judgement.validity) }
            whole = restored
        }
        store.counters.add(.memoryHit)
        return whole
    }

    /// Returns whether the validity has ended, by the exact clock if the coarse one does not suffice.
    private func isOver(_ validity: MemoryValidity, _ coarseNow: Timestamp) -> Bool {
        // Near the end the exact clock decides. A configured clock has no coarse form, so it is not read again.
        if validity.isBeforeEnd(coarseNow) { return false }
        return !((configuration.now == nil ? .now : coarseNow) < validity.end)
    }

    var coarseNow: Timestamp {
        configuration.now.map { Timestamp($0()) } ?? .coarseNow
    }

    private func isStillStored(_ held: MemoryValue<some Sendable>, in store: Store) -> Bool {
        // An error counts as a change: the read from disk that follows fails in the same way, and reports the error.
        (try? store.entries.read(held.entryName)?.record == held.makeRecord()) ?? false
    }

    /// Holds in memory a value that was just read or written.
    ///
    /// - Parameters:
    ///   - validity: the conditions under which the value may be returned; if it has no generation, each hit compares the
    ///     value's record with the one on disk.
    ///   - isOnly: whether the value is stored nowhere else; if so, it is admitted even if a hit is unlikely.
    func hold(_ item: MemoryEntry, by validity: MemoryValidity, of store: Store, isOnly: Bool = false) {
        guard let memory else { return }
        let now = coarseNow
        let age = followLongestAge(of: store, memory)
        var validity = validity
        validity.accessDue = now.advanced(byNanoseconds: store.accesses.granularity)
        if age != .max {
            validity.end = min(validity.end, item.created.advanced(byNanoseconds: age))
            // The value's time in memory is over, or the value exceeds the age limit; on disk it stays until the next
            // collection.
            if !(now < validity.end) { return }
        }
        memory.keep(item, by: validity, isOnly: isOnly, upToAge: age)
    }

    /// Applies the directory's current age limit to the values in memory.
    ///
    /// Takes two loads if the limit has not changed.
    func followLimits() {
        if let memory { _ = followLongestAge(of: store, memory) }
    }

    private func followLongestAge(of store: Store, _ memory: MemoryTier) -> Int64 {
        let age = store.longestAge
        if age != memory.longestAge.load(ordering: .relaxed) { memory.limitAge(to: age) }
        return age
    }

    /// Removes expired values from memory without waiting for a get.
    ///
    /// Must be called about once a second. Makes no system call.
    func dropExpired() {
        guard let memory else { return }
        memory.removeExpired(at: coarseNow)
    }

    /// Releases part of the memory tier under memory pressure.
    ///
    /// Under moderate pressure a call releases a quarter, and the call a second later a quarter of the rest, so that a
    /// short stall costs little. If the kernel is about to kill processes, a call releases three quarters.
    ///
    /// - Parameter pressure: the memory pressure, evaluated only if needed.
    func relieve(_ pressure: () -> MemoryPressure) {
        guard configuration.memory.shrinksUnderPressure, let memory, memory.usage.count > 0 else { return }
        switch pressure() {
        case .none: return
        case .some: memory.shrink(to: 0.75, discarding: configuration.memory.discardsParts)
        case .critical: memory.shrink(to: 0.25, discarding: configuration.memory.discardsParts)
        }
    }
}

/// The memory gauge of this process, shared by its caches.
final class SystemMemory: Sendable {
    private static let own = PerProcess { SystemMemory() }

    private let gauge = MemoryGauge()

    static func pressure() -> MemoryPressure { own.value.gauge?.pressure() ?? .none }
}

extension StoreCounters.Event {
    /// Creates the event that counts a removal from the memory tier.
    init(_ cause: MemoryRemovalCause) {
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
