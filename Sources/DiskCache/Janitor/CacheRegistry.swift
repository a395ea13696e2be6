// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// All open caches of this process, which are closed, if requested, when a signal ends the process.
final class CacheRegistry: Sendable {
    private static let own = PerProcess { CacheRegistry() }
    static var all: CacheRegistry { own.value }

    /// Closes a cache within a deadline; does nothing if the cache has been released.
    typealias Close = @Sendable (Duration) -> Void

    private struct State {
        var members: [ObjectIdentifier: Close] = [:]
        var deadline: Duration = .zero
        var isWatching = false
        /// Whether the thread that waits for a signal has ended, because the pipe could not be read.
        var hasGivenUp = false
    }

    private let state = Locked(State())

    func add(_ identifier: ObjectIdentifier, close: @escaping Close) {
        state.withLock { $0.members[identifier] = close }
    }

    func remove(_ identifier: ObjectIdentifier) {
        state.withLock { $0.members[identifier] = nil }
    }

    /// Makes SIGTERM and SIGINT, if they end the process, close all caches first; a repeated call changes the deadline.
    func closeOnTermination(deadline: Duration) throws(CacheError) {
        let isNew = state.withLock { state in
            defer { state.isWatching = true }
            state.deadline = deadline
            return !state.isWatching
        }
        guard isNew else { return }
        do throws(Errno) {
            try watch()
        } catch {
            state.withLock { $0.isWatching = false }
            if error == .exists {
                throw CacheError(
                    .invalidArgument,
                    "close on termination: this process handles SIGTERM or SIGINT itself: call close there"
                )
            }
            throw CacheError(errno: error, "watch for", path: "signals")
        }
    }

    private func watch() throws(Errno) {
        let signals = [Signal.terminate, .interrupt]
        guard signals.allSatisfy({ $0.hasDefaultEffect || $0.isIgnored }) else { throw .exists }
        let pipe = try SignalPipe()
        // The thread starts first. A signal that arrives before the thread waits for it stays in the pipe.
        try DetachedThread.start("diskcache-end") { self.run(pipe) }
        for signal in signals { _ = try pipe.take(signal) }
        // The thread may have ended before the signals were handled.
        if state.withLock(\.hasGivenUp) { restoreSignals() }
    }

    private func run(_ pipe: SignalPipe) {
        do throws(Errno) {
            let signal = try pipe.next()
            close()
            signal.endProcess()
        } catch {
            // This process holds both ends of the pipe, so reading fails only if a sandbox forbids it. Then the signals
            // end the process at once, as they do by default.
            state.withLock { $0.hasGivenUp = true }
            restoreSignals()
        }
    }

    private func restoreSignals() {
        for signal in [Signal.terminate, .interrupt] { signal.restoreDefault() }
    }

    /// Closes all caches, one after the other, each within its share of the remaining time.
    private func close() {
        let deadline = state.withLock { $0.deadline }
        let end = ContinuousClock.now + .nanoseconds(max(0, deadline.saturatingNanoseconds))
        var open = state.withLock { Array($0.members.values) }
        while let close = open.popLast() { close((end - .now) / (open.count + 1)) }
    }
}
