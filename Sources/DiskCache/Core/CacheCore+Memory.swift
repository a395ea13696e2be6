// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

extension CacheCore {
    /// The value of `key` in memory, if that is still the one that counts, and when it was found.
    ///
    /// No system call and no allocation where the directory has a control file; one call, to hold the
    /// record against the one on disk, where it has none.
    func held<Value>(_ key: String, _ form: MemoryForm, as type: Value.Type) -> FoundValue<Value>? {
        guard let tier else { return nil }
        // Before the tier's lock: a clock of the user's runs under none.
        let now = coarseNow
        switch tier.use({ $0.settledValue(forKey: key, form, at: now) }) {
        case .absent: return nil
        case .unsettled: return judged(key, form, tier, now)
        case .hit(let item):
            guard let held = HeldValue<Value>.known(item) else { return nil }
            // What has dropped a part of it is always judged.
            return FoundValue(held: held, moment: now)
        }
    }

    /// The same where more than the generation has to be looked at.
    @inline(never)
    private func judged<Value>(
        _ key: String,
        _ form: MemoryForm,
        _ tier: UncountedReference<MemoryTier>,
        _ now: Timestamp
    ) -> FoundValue<Value>? {
        var accessed: Timestamp?
        var isUnknown = false
        var found = MemoryStamp()
        let item = tier.use {
            $0.value(forKey: key, form: form) { store, stamp in
                switch store?.use({ $0.condition(of: stamp.generation) }) {
                case .outdated: if configuration.checksGenerations { return .invalidated }
                case .unknown, nil: isUnknown = true
                case .current: break
                }
                if isOver(stamp, now) { return .expired }
                if !(now < stamp.accessDue) {
                    stamp.accessDue = now + .nanoseconds(store?.use { $0.accesses.granularity } ?? 0)
                    accessed = now
                }
                found = stamp
                store?.use { $0.counters.addForAll(.memoryHit) }
                return .valid
            }
        }
        guard let item, var held = HeldValue<Value>.known(item) else { return nil }
        if isUnknown || held.isDiscarded {
            guard let usable = usable(held, key, form, found, isUnknown: isUnknown) else {
                // It was none after all.
                store.counters.addForAll(.memoryHit, -1)
                memory?.takeBackHit()
                return nil
            }
            held = usable
        }
        if let accessed { noteAccess(held.keyDigest, at: accessed) }
        return FoundValue(held: held, moment: now)
    }

    /// What can be given out of a value that takes more than a look at its stamp.
    private func usable<Value>(
        _ held: HeldValue<Value>,
        _ key: String,
        _ form: MemoryForm,
        _ stamp: MemoryStamp,
        isUnknown: Bool
    ) -> HeldValue<Value>? {
        if isUnknown, !isStillStored(held, in: store) {
            memory?.remove(key, cause: .invalidated)
            return nil
        }
        guard held.isDiscarded else { return held }
        guard let whole = restored(held) else { return nil }
        // A frozen tier would not take it, and so lose what it has.
        if let memory, !memory.isFrozen {
            memory.insert(whole, forKey: key, form: form, cost: whole.cost, stamp: stamp)
        }
        return whole
    }

    /// nil: it can't be, and is read from disk again.
    private func restored<Value>(_ held: HeldValue<Value>) -> HeldValue<Value>? {
        do {
            return try (held as? any RestorableItem)?.restored() as? HeldValue<Value>
        } catch {
            return nil
        }
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
        guard let expected = held.storedRecord else { return false }
        do throws(StoreError) {
            return try store.entries.read(held.keyDigest)?.bytes == expected
        } catch {
            // The get that follows on disk meets the same and reports it.
            return false
        }
    }

    /// Keeps a value that was just read or written.
    ///
    /// Nothing is kept without a generation to check it by later, nor without a record to hold against the
    /// one on disk.
    func hold(
        _ item: HeldValue<some Sendable>,
        _ form: MemoryForm,
        _ generation: Generation?,
        until end: Timestamp?
    ) {
        guard let memory, generation != nil || (!store.hasGenerations && item.storedRecord != nil) else {
            return
        }
        let stamp = MemoryStamp(
            generation: generation,
            heldUntil: end,
            accessDue: coarseNow + .nanoseconds(store.accesses.granularity)
        )
        memory.insert(
            item,
            forKey: item.key,
            form: form,
            cost: item.cost,
            stamp: stamp,
            isPlain: form == .bytes
        )
    }
}

extension StoreCounters.Event {
    /// What a value's leaving the memory tier counts as.
    init(_ cause: RemovalCause) {
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
