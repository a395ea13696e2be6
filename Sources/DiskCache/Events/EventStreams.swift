// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// The listeners for a cache's events.
///
/// Without listeners, the usual case, an event costs one load.
final class EventStreams: Sendable {
    /// How many events a stream buffers for a slow listener; the oldest are dropped first.
    ///
    /// A listener that must not lose any event uses the configuration's callback.
    static let capacity = 1024

    private struct State {
        var continuations: [Int: AsyncStream<CacheEvent>.Continuation] = [:]
        var next = 0
        /// An event that occurred before any stream could exist.
        ///
        /// The first stream begins with it.
        var early: CacheEvent?
        /// Whether all streams have ended.
        var isFinished = false
    }

    private let callback: (@Sendable (CacheEvent) -> Void)?
    private let state = Locked(State())
    private let listeners = Atomic<Int>(0)
    /// In a child that this process forks, `state` may be locked by a thread that doesn't exist there.
    private let owner = processGeneration

    init(callback: (@Sendable (CacheEvent) -> Void)?) {
        self.callback = callback
    }

    deinit {
        finish()
    }

    private var isOwn: Bool { processGeneration == owner }

    /// Sends an event to all listeners, on the calling thread, which must hold no lock; without listeners the event is not
    /// created.
    func send(_ event: @autoclosure () -> CacheEvent) {
        guard callback != nil || listeners.load(ordering: .relaxed) > 0 else { return }
        let event = event()
        callback?(event)
        let continuations = state.withLock { Array($0.continuations.values) }
        for continuation in continuations { continuation.yield(event) }
    }

    /// Sends an event that occurred while the cache was opened, before there could be a stream.
    func sendEarly(_ event: CacheEvent) {
        callback?(event)
        state.withLock { $0.early = event }
    }

    /// Returns a stream of all events from now on; after ``finish()``, a stream that has ended.
    func makeStream() -> AsyncStream<CacheEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: CacheEvent.self,
            bufferingPolicy: .bufferingNewest(Self.capacity)
        )
        guard isOwn,
            let number = state.withLock({ (state) -> Int? in
                if state.isFinished { return nil }
                state.next += 1
                state.continuations[state.next] = continuation
                if let early = state.early.take() { continuation.yield(early) }
                return state.next
            })
        else {
            continuation.finish()
            return stream
        }
        listeners.add(1, ordering: .relaxed)
        continuation.onTermination = { [weak self] _ in self?.forget(number) }
        return stream
    }

    /// Ends all streams, including those made later.
    func finish() {
        guard isOwn else { return }
        let continuations = state.withLock { state in
            state.isFinished = true
            return Array(state.continuations.values)
        }
        // Ended outside the lock: ending one calls back into `forget`.
        for continuation in continuations { continuation.finish() }
    }

    private func forget(_ number: Int) {
        guard isOwn else { return }
        let wasThere = state.withLock { $0.continuations.removeValue(forKey: number) != nil }
        if wasThere { listeners.subtract(1, ordering: .relaxed) }
    }
}
