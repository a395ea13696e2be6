// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The remote tier of an open cache, with what this process asks it at the moment.
///
/// Held by the ``SharedCache`` and by what closes it: when both go, the tier is told to end, and nobody waits
/// for it.
final class RemoteLine: Sendable {
    let tier: any RemoteTier
    private let core: CacheCore
    /// What is asked for.
    private let keys = Monitored<Set<Digest>>([])

    init(_ tier: any RemoteTier, _ core: CacheCore) {
        self.tier = tier
        self.core = core
    }

    deinit {
        // In a child that was forked there are no threads to be told, and the mutexes may be held for ever.
        if core.isOwn { tier.close(until: .now) }
    }

    /// Whether the caller is to ask for `key`; false: another thread did, and is done now, or there is no
    /// time left.
    func enter(_ key: Digest, until deadline: ContinuousClock.Instant) -> Bool {
        if keys.withLock({ $0.insert(key).inserted }) { return true }
        _ = keys.wait(until: deadline) { $0.contains(key) ? nil : true }
        return false
    }

    func leave(_ key: Digest) {
        keys.withLock { _ = $0.remove(key) }
        keys.wakeAll()
    }
}
