// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The remote tier of an open cache, and this process's current requests to it.
///
/// The ``SharedCache`` and its ``CacheRegistration`` hold this object. When both are released, the tier is asked to end;
/// the release does not wait for it.
final class RemoteLookup: Sendable {
    let tier: any RemoteTier
    private let core: CacheCore
    /// The keys of current requests.
    private let keys = Monitored<Set<Digest>>([])

    init(_ tier: any RemoteTier, _ core: CacheCore) {
        self.tier = tier
        self.core = core
    }

    deinit {
        // A forked child has no threads to stop, and the mutexes may be held forever.
        if core.isOwn { tier.close(until: .now) }
    }

    /// Returns whether the caller must request `key`.
    ///
    /// If another thread is requesting it, waits until that thread is done or the deadline passes, and returns false.
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
