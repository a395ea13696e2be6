// SPDX-License-Identifier: Apache-2.0

import CacheStore
import FoundationEssentials
import Platform

extension CacheCore {
    /// The value of `key` in memory, if that is still the one that counts.
    ///
    /// No system call and no allocation where the directory has a control file; one call, to hold the
    /// record against the one on disk, where it has none.
    func held<Value>(_ key: String, _ form: MemoryForm, as type: Value.Type) -> HeldValue<Value>? {
        guard let memory else { return nil }
        let store = store
        let generations = store.generations
        var accessed: Timestamp?
        var found = MemoryStamp()
        let item = memory.value(forKey: key, form: form) { stamp in
            let verdict = judge(stamp, generations)
            guard verdict == .valid else { return verdict }
            let now = coarseNow
            if now >= stamp.accessDue {
                stamp.accessDue = now + configuration.accessGranularity
                accessed = now
            }
            found = stamp
            return .valid
        }
        guard var held = item as? HeldValue<Value> else { return nil }
        if generations == nil, !isStillStored(held, in: store) {
            memory.remove(key, cause: .invalidated)
            return nil
        }
        if held.isDiscarded {
            guard let whole = restored(held) else { return nil }
            // A frozen tier would not take it, and so lose what it has.
            if !memory.isFrozen {
                memory.insert(whole, forKey: key, form: form, cost: whole.cost, stamp: found)
            }
            held = whole
        }
        if let accessed { noteAccess(held.keyDigest, at: accessed) }
        store.counters.add(.memoryHit)
        return held
    }

    /// nil: it can't be, and is read from disk again.
    private func restored<Value>(_ held: HeldValue<Value>) -> HeldValue<Value>? {
        do {
            return try (held as? any RestorableItem)?.restored() as? HeldValue<Value>
        } catch {
            return nil
        }
    }

    /// Whether a copy with this stamp may be given out.
    private func judge(_ stamp: MemoryStamp, _ generations: Generations?) -> MemoryVerdict {
        if configuration.checksGenerations, let generations {
            guard let generation = stamp.generation, generations.isCurrent(generation) else {
                return .invalidated
            }
        }
        guard let end = stamp.heldUntil else { return .valid }
        // The coarse clock is late by up to a tick; near the end the exact one decides.
        if coarseNow + Self.coarseClockLag < end { return .valid }
        return now < end ? .valid : .expired
    }

    /// More than a tick of the kernel, 1 to 10 ms (CONFIG_HZ), by which the coarse clock may be late.
    private static let coarseClockLag: Duration = .milliseconds(20)

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
        guard let memory, generation != nil || (store.generations == nil && item.storedRecord != nil) else {
            return
        }
        let stamp = MemoryStamp(
            generation: generation,
            heldUntil: end,
            accessDue: coarseNow + configuration.accessGranularity
        )
        memory.insert(item, forKey: item.key, form: form, cost: item.cost, stamp: stamp)
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
