// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

extension CacheCore {
    /// What the janitor's thread and closing do for this cache.
    func duties(_ writeBehind: WriteBehind) -> JanitorDuties {
        JanitorDuties(
            store: { self.store },
            now: { self.now },
            everySecond: {
                self.flushAccesses()
                self.relieve(SystemMemory.pressure)
                self.store.followControl()
            },
            reopen: { () throws(StoreError) in try self.reopen() },
            swept: { self.events.send(.swept(GCReport($0, isDryRun: false))) },
            failed: { self.events.send(.sweepFailed(CacheError($0))) },
            shut: { self.close() },
            drain: { writeBehind.drain(until: $0) },
            flush: { self.flushAccesses() },
            closed: { self.events.finish() }
        )
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
    private static let gauge = Locked(MemoryGauge())

    static func pressure() -> MemoryPressure {
        gauge.withLock { $0?.pressure() ?? .none }
    }
}
