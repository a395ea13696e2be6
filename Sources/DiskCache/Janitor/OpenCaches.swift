// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// All caches that this process has open; closes them when it is told to end, if that was asked for.
final class OpenCaches: Sendable {
    private static let own = PerProcess { OpenCaches() }
    static var all: OpenCaches { own.value }

    private struct Member {
        weak var presence: Presence?
    }

    private struct State {
        var members: [ObjectIdentifier: Member] = [:]
        var deadline: Duration = .zero
        var isWatching = false
        /// Whether the thread that waits for a signal has ended, as the pipe could not be read.
        var hasGivenUp = false
    }

    private let state = Locked(State())

    func add(_ presence: Presence) {
        state.withLock { $0.members[ObjectIdentifier(presence)] = Member(presence: presence) }
    }

    func remove(_ identifier: ObjectIdentifier) {
        state.withLock { $0.members[identifier] = nil }
    }

    /// Closes all of them when a signal ends the process, or changes the deadline for that.
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
        // The thread first: a signal that arrives before it waits is in the pipe.
        try DetachedThread.start("diskcache-end") { self.run(pipe) }
        for signal in signals { _ = try pipe.take(signal) }
        // The thread may have given up before they were taken.
        if state.withLock(\.hasGivenUp) { restoreSignals() }
    }

    private func run(_ pipe: SignalPipe) {
        do throws(Errno) {
            let signal = try pipe.next()
            close()
            signal.endProcess()
        } catch {
            // A pipe that this process holds both ends of can be read, unless a sandbox forbids it: then the signals end it
            // as they would without this.
            state.withLock { $0.hasGivenUp = true }
            restoreSignals()
        }
    }

    private func restoreSignals() {
        for signal in [Signal.terminate, .interrupt] { signal.restoreDefault() }
    }

    /// Closes all of them, one after the other, each within its share of what is left of the deadline.
    private func close() {
        let deadline = state.withLock { $0.deadline }
        let end = ContinuousClock.now + .nanoseconds(max(0, deadline.saturatingNanoseconds))
        var open = state.withLock { $0.members.values.compactMap(\.presence) }
        while let presence = open.popLast() {
            _ = presence.close(deadline: (end - .now) / (open.count + 1))
        }
    }
}
