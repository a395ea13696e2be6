// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Closes the caches of this process when it is told to end.
final class TerminationWatch: Sendable {
    private static let own = PerProcess { TerminationWatch() }
    static var shared: TerminationWatch { own.value }

    private struct State {
        var deadline: Duration = .zero
        var isWatching = false
    }

    private let state = Locked(State())

    /// Starts the watch, or changes its deadline.
    func begin(deadline: Duration) throws(CacheError) {
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
        // The thread first: a signal that arrives before it waits is in the pipe.
        try DetachedThread.start("diskcache-end") { self.run(pipe) }
        for signal in signals { _ = try pipe.take(signal) }
    }

    private func run(_ pipe: SignalPipe) {
        do throws(Errno) {
            let signal = try pipe.next()
            OpenCaches.all.close(deadline: state.withLock { $0.deadline })
            signal.endProcess()
        } catch {
            // A pipe that this process holds both ends of can be read.
            preconditionFailure("reading the signals: \(error)")
        }
    }
}
