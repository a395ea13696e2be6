// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The way of one leader to the flight lock of its key, and the lock once it has it.
///
/// Used by one task at a time, from whatever thread that is on. What goes without
/// ``release(isStored:)`` frees the lock and leaves its file.
final class FlightApproach: Sendable {
    /// How often the lock is tried while another process computes, so that its value is had within 10 ms
    /// of being there.
    ///
    /// A try is one system call.
    static let longestPause: Duration = .milliseconds(4)

    /// How an attempt ended.
    enum Step: Sendable, Equatable {
        /// The lock is this one's, until it is released.
        case acquired
        case held
        /// The other one is done, which see; if the value is not there, try again at once.
        case ended(isUnstored: Bool)
        /// There are no locks: out of space, no permission, the cache was closed.
        case unavailable
    }

    private enum State: ~Copyable {
        case waiting(FlightWait)
        case holding(FlightLock)
        case done
    }

    private let cache: SharedCache
    private let state: Locked<State>

    init(_ key: Digest, in cache: SharedCache) {
        self.cache = cache
        do throws(CacheError) {
            state = Locked(
                .waiting(
                    try cache.withStore { (store, _) throws(StoreError) in
                        FlightWait(for: key, in: store.directory)
                    }
                )
            )
        } catch {
            state = Locked(.done)
        }
    }

    /// Tries to get the lock; never waits.
    func attempt() -> Step {
        state.withLock { state in
            guard case .waiting(var wait) = exchange(&state, with: .done) else { return .unavailable }
            do throws(StoreError) {
                switch try wait.attempt() {
                case .acquired(let lock):
                    state = .holding(lock)
                    return .acquired
                case .held:
                    state = .waiting(wait)
                    return .held
                case .ended(let isUnstored):
                    state = .waiting(wait)
                    return .ended(isUnstored: isUnstored)
                }
            } catch {
                cache.flights.count(.cacheFailure)
                return .unavailable
            }
        }
    }

    /// Gives the lock back; `isStored` is false where the value was computed and could not be kept.
    func release(isStored: Bool) {
        state.withLock { state in
            guard case .holding(let lock) = exchange(&state, with: .done) else { return }
            if isStored { lock.release() } else { lock.releaseUnstored() }
        }
    }
}
