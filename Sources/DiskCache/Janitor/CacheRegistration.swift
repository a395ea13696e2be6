// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The registration of an open cache in its directory, as a session with a janitor, and in its process.
///
/// Only the ``SharedCache`` holds this object. When the cache is released, the janitor's thread is asked to end; the
/// release does not wait for it.
final class CacheRegistration: Sendable {
    private let core: CacheCore
    private let writeBehind: WriteBehind
    private let janitor: Janitor
    private let remote: RemoteLookup?

    /// Joins the session (two system calls) and starts the janitor's thread (about fifteen), as configured.
    init(_ core: CacheCore, _ writeBehind: WriteBehind, _ remote: RemoteLookup? = nil) {
        self.core = core
        self.remote = remote
        self.writeBehind = writeBehind
        janitor = Janitor(core)
        janitor.begin()
        CacheRegistry.all.add(ObjectIdentifier(self)) { [weak self] in _ = self?.close(deadline: $0) }
    }

    deinit {
        // A forked child has no thread to stop, and the mutexes may be held forever.
        guard core.isOwn else { return }
        CacheRegistry.all.remove(ObjectIdentifier(self))
        janitor.stop()
    }

    /// Closes the cache within `deadline`.
    ///
    /// In this order: the cache rejects calls; the janitor stops, in the middle of a sweep if necessary; queued puts are
    /// written, and sent to remote servers; accesses are recorded; the session ends. If it was the last session, expired
    /// entries are swept; only then, because other sessions must be able to end during the sweep.
    ///
    /// Does nothing in a forked child of the process that opened the cache.
    func close(deadline: Duration) -> CloseReport {
        guard core.isOwn, core.close() else { return CloseReport() }
        defer { core.events.finish() }
        let end = ContinuousClock.now + .nanoseconds(max(0, deadline.saturatingNanoseconds))
        janitor.stop()
        var report = CloseReport()
        report.isComplete = writeBehind.drain(until: end)
        // Changes that are not sent in time wait on disk for the next process.
        remote?.tier.close(until: end)
        // If the janitor's thread is stuck in the kernel, closing continues without it.
        _ = janitor.waitUntilStopped(end)
        core.flushAccesses()
        do throws(CacheError) {
            report.wasLast = try janitor.leave()
            if report.wasLast { try sweep(until: end, &report) }
        } catch {
            report.isComplete = false
            report.failure = error
        }
        return report
    }

    private func sweep(until end: ContinuousClock.Instant, _ report: inout CloseReport) throws(CacheError) {
        var request = SweepRequest()
        request.expiredOnly = true
        request.pace.deadline = end
        // No sweep if another process, such as a command, is sweeping now: it does the same work.
        let result = try Sweep.runIfDue(request, on: core.store, now: core.now) { _ in true }
        if let result { janitor.swept(result) }
        report.collection = result
        report.isComplete = report.isComplete && result?.isComplete ?? false
    }
}
