// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform
import Synchronization

/// Publishes puts in the background, within limits.
///
/// One thread at a time drains the queue. It ends when nothing is left, and keeps what it needs alive until
/// then, so that no cache has to wait for it when it goes.
final class WriteBehind: Sendable {
    private let limits: CacheConfiguration.WriteBehind
    private let pending: Monitored<PendingWrites>
    private let publish: @Sendable (PendingWrite) -> Void
    private let thread = ThreadPool("diskcache-queue", limit: 1)
    /// How many wait or are being published.
    ///
    /// With it a get passes by without taking the lock.
    private let count = Atomic<Int>(0)

    /// - Parameter publish: writes a put to disk and handles failures; called by one thread at a time for each
    ///   key.
    init(limits: CacheConfiguration.WriteBehind, publish: @escaping @Sendable (PendingWrite) -> Void) {
        self.limits = limits
        pending = Monitored(PendingWrites(limits: limits))
        self.publish = publish
    }

    /// Queues a put; false if it is too large to be queued at all, or there is no room now and it must not wait.
    ///
    /// While there is room, takes the lock once, and starts the background thread if none is draining the
    /// queue.
    ///
    /// - Parameter waits: whether to wait while the queue is full.
    func put(_ write: PendingWrite, waits: Bool = true) -> Bool {
        guard write.data.count <= limits.size.bytes, limits.count > 0 else { return false }
        var old: PendingWrite?
        let mustStart =
            waits
            ? pending.wait { admit(write, to: &$0, replacing: &old) }
            : pending.withLock { admit(write, to: &$0, replacing: &old) }
        withExtendedLifetime(old) {}
        guard let mustStart else { return false }
        start(if: mustStart)
        return true
    }

    /// Queues a put and tells whether the background thread must be started for it; nil: there is no room now.
    private func admit(
        _ write: PendingWrite,
        to pending: inout PendingWrites,
        replacing old: inout PendingWrite?
    ) -> Bool? {
        guard pending.add(write, replacing: &old) else { return nil }
        count.store(pending.count, ordering: .sequentiallyConsistent)
        defer { pending.isDraining = true }
        return !pending.isDraining
    }

    private func start(if isNeeded: Bool) {
        if isNeeded { thread.run { self.drain() } }
    }

    private func drain() {
        while let write = pending.withLock({ $0.takeNext() }) {
            publish(write)
            finish(write)
        }
    }

    /// Notes the end of a put, also for a caller that may have kept the drain from continuing.
    private func finish(_ write: PendingWrite) {
        let mustStart = pending.withLock { pending in
            pending.finish(write)
            count.store(pending.count, ordering: .sequentiallyConsistent)
            defer { pending.isDraining = pending.isDraining || pending.count > 0 }
            return !pending.isDraining && pending.count > 0
        }
        pending.wakeAll()
        start(if: mustStart)
    }

    /// Whether nothing is pending, of any key.
    ///
    /// One load.
    @inline(__always)
    var isIdle: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }

    /// What a get of this process must see although it is not on disk yet.
    ///
    /// One load if nothing is pending; then `key` is not called.
    func latest(_ key: () -> Digest) -> PendingWrite? {
        if isIdle { return nil }
        let digest = key()
        return pending.withLock { $0.latest(of: digest) }
    }

    /// Waits for the end of a put that is being written; false if that takes longer.
    ///
    /// - Parameter limit: a second for a get. The last step of a put takes less, unless the disk has no room.
    func awaitEnd(of write: PendingWrite, within limit: Duration = .seconds(1)) -> Bool {
        pending.wait(until: .now + limit) { _ in write.isEnded ? true : nil } ?? false
    }

    /// Publishes a pending put of `key` now, so that what follows finds it on disk; waits if it is being
    /// published.
    func settle(_ key: Digest) {
        if isIdle { return }
        let taken = pending.wait { pending -> PendingWrite?? in
            pending.isPublishing(key) ? nil : .some(pending.take(key))
        }
        guard case .some(.some(let write)) = taken else { return }
        publish(write)
        finish(write)
    }

    /// Waits until everything that was put before this call is published or has failed.
    ///
    /// - Returns: false if `deadline` passed first.
    func flush(until deadline: ContinuousClock.Instant? = nil) -> Bool {
        let target = pending.withLock { $0.sequence }
        return pending.wait(until: deadline) { $0.isFinished(upTo: target) ? true : nil } ?? false
    }

    /// Waits until nothing is left to publish, including puts that come meanwhile.
    ///
    /// - Returns: false if `deadline` passed first.
    func drain(until deadline: ContinuousClock.Instant) -> Bool {
        pending.wait(until: deadline) { $0.count == 0 ? true : nil } ?? false
    }
}
