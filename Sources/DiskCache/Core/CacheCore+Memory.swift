// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform
import Synchronization

extension CacheCore {
    /// The result of checking a value that may be returned, at ``moment``.
    private struct Judgement {
        let validity: MemoryValidity
        let moment: Timestamp
        /// Whether an access must be recorded.
        let isAccessDue: Bool
        /// Whether the control file shows that no writer has changed the value; if not, its record must be compared with the
        /// one on disk.
        let isCurrent: Bool
    }

    /// Returns the value of `key` in memory, if it is still current, and the time of the lookup.
    ///
    /// No system call and no allocation if the directory has a control file; otherwise one call, to compare the record with
    /// the one on disk.
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

    /// Returns why a value may not be returned, if more than its generation must be checked; nil if it may.
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

    /// Returns the checked value, complete and identical to the one on disk; nil if it may not be returned.
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
            // A frozen tier would not admit it, and would lose the value that it holds.
            if let memory, !memory.isFrozen { memory.keep(restored, by: judgement.validity) }
            whole = restored
        }
        store.counters.add(.memoryHit)
        return whole
    }

    /// Returns whether the validity has ended.
    private func isOver(_ validity: MemoryValidity, _ coarseNow: Timestamp) -> Bool {
        // Near the end the exact clock decides. A configured clock is not read again.
        if validity.isBeforeEnd(coarseNow) { return false }
        return !((configuration.now == nil ? .now : coarseNow) < validity.end)
    }

    var coarseNow: Timestamp {
        configuration.now.map { Timestamp($0()) } ?? .coarseNow
    }

    private func isStillStored(_ held: MemoryValue<some Sendable>, in store: Store) -> Bool {
        // The get from disk that follows fails in the same way and reports it.
        (try? store.entries.read(held.entryName)?.record == held.makeRecord()) ?? false
    }

    /// Keeps a value in memory that was just read or written.
    ///
    /// - Parameters:
    ///   - validity: without a generation its record is compared with the one on disk at each use.
    ///   - isOnly: whether the value is stored nowhere else; it is then admitted however unlikely a hit is.
    func hold(_ item: MemoryEntry, by validity: MemoryValidity, of store: Store, isOnly: Bool = false) {
        guard let memory else { return }
        let now = coarseNow
        let age = followLongestAge(of: store, memory)
        var validity = validity
        validity.accessDue = now.advanced(byNanoseconds: store.accesses.granularity)
        if age != .max {
            validity.end = min(validity.end, item.created.advanced(byNanoseconds: age))
            // Past the age limit; on disk it stays until the next collection.
            if !(now < validity.end) { return }
        }
        memory.keep(item, by: validity, isOnly: isOnly, upToAge: age)
    }

    /// Applies the directory's current age limit to the values in memory.
    ///
    /// Two loads if nothing has changed.
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
    /// Must be called about once a second. No system call.
    func dropExpired() {
        guard let memory else { return }
        memory.removeExpired(at: coarseNow)
    }

    /// Releases part of the memory tier under memory pressure.
    ///
    /// A quarter, and a second later a quarter of the rest, so that a short stall costs little; three quarters at once if
    /// the kernel is about to kill processes.
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
