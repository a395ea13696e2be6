// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform
import Synchronization

extension CacheCore {
    /// What the janitor's thread and closing do for this cache.
    func duties(_ writeBehind: WriteBehind) -> JanitorDuties {
        JanitorDuties(
            store: { self.store },
            now: { self.now },
            tick: { self.tick },
            everyTick: { self.flushAccesses() },
            everySecond: {
                self.relieve(SystemMemory.pressure)
                self.store.followControl()
                self.followConfiguration()
            },
            reopen: { () throws(StoreError) in try self.reopen() },
            swept: {
                self.events.send(.collected(CollectionReport($0, isDryRun: false)))
                self.warnOfPressure()
            },
            failed: { self.events.send(.collectionFailed(CacheError($0))) },
            shut: { self.close() },
            drain: { writeBehind.drain(until: $0) },
            flush: { self.flushAccesses() },
            closed: { self.events.finish() }
        )
    }

    /// Time between two notings of what was used in memory: as long as an access may go unnoted on disk, a second at
    /// most; and not below what wakes up 20 times a second.
    private var tick: Duration {
        min(.seconds(1), max(.milliseconds(50), .nanoseconds(store.accesses.granularity)))
    }

    /// Looks for other limits, and has uses in memory noted sooner where entries are evicted sooner.
    private func followConfiguration() {
        let store = store
        store.followConfiguration()
        reportConfiguration(store.configurationFailure)
        let granularity = store.accesses.granularity
        let before = heldGranularity.exchange(granularity, ordering: .relaxed)
        // Noticeably finer than what values in memory were held by: it takes a walk through all of them.
        if granularity < before - before / 4 {
            memory?.advanceAccesses(to: coarseNow.advanced(byNanoseconds: granularity))
        }
    }

    /// Says so where the directory's limits are below what is in use.
    private func warnOfPressure() {
        guard let totals = CacheStatistics.Totals(of: store) else { return }
        let now = ContinuousClock.now
        let present = totals.activity
        let pressure: CacheActivity? = pressureWatch.withLock { watch in
            let recent = watch.last.map { present.since($0) }
            watch.last = present
            guard let recent, recent.isBelowWorkingSet, now >= watch.silentUntil else { return nil }
            watch.silentUntil = now + .seconds(3600)
            return recent
        }
        if let pressure { events.send(.limitsBelowWorkingSet(pressure)) }
    }

    /// The same trouble every second is told once.
    private func reportConfiguration(_ failure: StoreError?) {
        let isNew = configurationFailure.withLock { known in
            defer { known = failure }
            return known != failure
        }
        if isNew, let failure { events.send(.configurationFailed(CacheError(failure))) }
    }

    /// Gives up some of what is in memory where the system runs short of it.
    ///
    /// A quarter, and of what is left a quarter a second later, so that a short stall costs little; where the
    /// kernel is about to kill processes, three quarters at once.
    ///
    /// - Parameter pressure: asked for only where it makes a difference.
    func relieve(_ pressure: () -> MemoryPressure) {
        guard configuration.memory.shrinksUnderPressure, let memory, memory.usage.count > 0 else { return }
        switch pressure() {
        case .none: return
        case .some: memory.shrink(to: 0.75)
        case .critical: memory.shrink(to: 0.25)
        }
    }
}

/// The gauge of this process, shared by its caches.
private enum SystemMemory {
    private static let gauge = PerProcess { Locked<MemoryGauge?>.Box(MemoryGauge()) }

    static func pressure() -> MemoryPressure {
        gauge.value.value.withLock { $0?.pressure() ?? .none }
    }
}
