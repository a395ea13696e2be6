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

    /// The time between two recordings of uses in memory: as long as a use may go unrecorded, at most a second
    /// and at least a twentieth of one.
    private var tick: Duration {
        min(.seconds(1), max(.milliseconds(50), .nanoseconds(store.accesses.granularity)))
    }

    /// Follows changed limits, and has uses in memory recorded sooner if entries are evicted sooner.
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

    /// Reports if the directory's limits are too low for what is in use.
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

    /// Reports a failure that repeats every second only once.
    private func reportConfiguration(_ failure: StoreError?) {
        let isNew = configurationFailure.withLock { known in
            defer { known = failure }
            return known != failure
        }
        if isNew, let failure { events.send(.configurationFailed(CacheError(failure))) }
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
