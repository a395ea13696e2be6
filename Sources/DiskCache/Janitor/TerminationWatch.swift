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
            throw CacheError(StoreError(errno: error, "watch for", path: "signals"))
        }
    }

    private func watch() throws(Errno) {
        let signals = [Signal.terminate, .interrupt]
        guard signals.allSatisfy({ $0.hasDefaultEffect || $0.isIgnored }) else { throw .exists }
        try Signal.takeFirst(of: signals, on: "diskcache-end") { signal in
            OpenCaches.all.close(deadline: self.state.withLock { $0.deadline })
            signal.endProcess()
        }
    }
}
