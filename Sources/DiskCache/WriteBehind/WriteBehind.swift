// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform
import Synchronization

/// Publishes puts in the background, from a queue of limited size.
///
/// One thread at a time drains the queue, and ends when the queue is empty. Until then the thread keeps this object
/// alive, so that releasing a cache never waits for the thread.
final class WriteBehind: Sendable {
    private let limits: CacheConfiguration.WriteBehind
    private let pending: Monitored<PendingWrites>
    private let publish: @Sendable (PendingWrite) -> Void
    private let thread = ThreadPool("diskcache-queue", limit: 1)
    /// The number of puts that wait or are being published.
    ///
    /// If it is zero, a get skips the lock.
    private let count = Atomic<Int>(0)

    /// Creates an empty queue.
    ///
    /// - Parameter publish: writes a put to disk and handles failures; called by one thread at a time for each key.
    init(limits: CacheConfiguration.WriteBehind, publish: @escaping @Sendable (PendingWrite) -> Void) {
        self.limits = limits
        pending = Monitored(PendingWrites(limits: limits))
        self.publish = publish
    }

    /// Queues a put.
    ///
    /// If there is room, this takes the lock once, and starts the background thread if none is draining the queue.
    ///
    /// - Parameter waits: whether to wait while the queue is full.
    /// - Returns: false if the put is too large for the queue, or if there is no room now and `waits` is false.
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

    /// Queues a put; returns whether the background thread must then be started, or nil if there is no room now.
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

    /// Records the end of a put; if puts are left and no thread drains the queue, because a caller was publishing, starts
    /// one.
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

    /// Whether no put of any key is pending.
    ///
    /// One load.
    @inline(__always)
    var isIdle: Bool { count.load(ordering: .sequentiallyConsistent) == 0 }

    /// Returns the put of a key that a get of this process must see although it is not on disk yet.
    ///
    /// Takes one load, and does not call `key`, if no put is pending.
    func latest(_ key: () -> Digest) -> PendingWrite? {
        if isIdle { return nil }
        let digest = key()
        return pending.withLock { $0.latest(of: digest) }
    }

    /// Waits until a put that is being written has ended; returns false if `limit` passes first.
    ///
    /// - Parameter limit: the maximum wait; gets use the default, a second. The last step of a put takes less, unless the
    ///   disk has no room.
    func awaitEnd(of write: PendingWrite, within limit: Duration = .seconds(1)) -> Bool {
        pending.wait(until: .now + limit) { _ in write.isEnded ? true : nil } ?? false
    }

    /// Publishes a pending put of `key` now, on the calling thread, so that later calls find it on disk; waits if another
    /// thread is publishing it.
    func settle(_ key: Digest) {
        if isIdle { return }
        let taken = pending.wait { pending -> PendingWrite?? in
            pending.isPublishing(key) ? nil : .some(pending.take(key))
        }
        guard case .some(.some(let write)) = taken else { return }
        publish(write)
        finish(write)
    }

    /// Waits until all puts before this call are published or have failed.
    ///
    /// - Returns: false if `deadline` passed first.
    func flush(until deadline: ContinuousClock.Instant? = nil) -> Bool {
        let target = pending.withLock { $0.sequence }
        return pending.wait(until: deadline) { $0.isFinished(upTo: target) ? true : nil } ?? false
    }

    /// Waits until no put is pending, including puts that are added meanwhile.
    ///
    /// - Returns: false if `deadline` passed first.
    func drain(until deadline: ContinuousClock.Instant) -> Bool {
        pending.wait(until: deadline) { $0.count == 0 ? true : nil } ?? false
    }
}
