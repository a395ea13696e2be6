// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Closes the caches of this process when it is told to end.
final class TerminationWatch: Sendable {
    private static let own = PerProcess { TerminationWatch() }
    static var shared: TerminationWatch { own.value }

    /// nil: it has not begun.
    private let deadline = Locked<Duration?>(nil)

    /// Starts the watch, or changes its deadline.
    func begin(deadline: Duration) throws(CacheError) {
        let isNew = self.deadline.withLock { present in
            defer { present = deadline }
            return present == nil
        }
        guard isNew else { return }
        do throws(Errno) {
            try watch()
        } catch {
            self.deadline.withLock { $0 = nil }
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
            OpenCaches.all.close(deadline: self.deadline.withLock { $0 } ?? .zero)
            signal.endProcess()
        }
    }
}
