// SPDX-License-Identifier: Apache-2.0

package import CacheStore

/// The course of one request for a value that is computed if it is missing; the outcome of each action decides the next
/// one.
///
/// The actions in order: look for the value; join this process's flight or lead it; as leader, acquire the lock between
/// processes; look again; compute; store; release the lock; hand over. This is a pure state machine: it has no input or
/// output, no clock and no locks. The blocking and the asynchronous forms of `value(forKey:)`, `hit(forKey:)` and
/// `values(forKeys:)`, and `diskcache run`, carry out its actions.
package struct FlightStateMachine: Sendable, Hashable {
    /// The purpose of a request.
    package enum Kind: Sendable, Hashable {
        /// Gets a value; if the wait for another caller times out or is cancelled, this request computes the value
        /// itself.
        case value
        /// Like ``value``, but ends without a value if it is cancelled while it waits.
        case cancellable
        /// Like ``cancellable``, but also ends without a value if the wait times out.
        case valueInTime
        /// Replaces a value in the background, unless another caller does so; leads its flight from the start.
        case refresh
    }

    /// The next action.
    package enum Action: Sendable, Hashable {
        /// Look for the value, which may be stale.
        case look
        /// Start a refresh of the value that was found.
        case refresh
        /// Join this process's flight, or start one.
        case enter
        /// Wait for the leader of the flight.
        case wait
        /// Try to acquire the lock between processes.
        case attempt
        /// Pause while another process holds the lock.
        case pause
        /// Close the flight to newcomers and look up whether the value was stored since the first look.
        case lookAgain
        /// Run the computation.
        case compute
        /// Close the flight again, if this request leads it, and store the computed value.
        case store
        /// Release the lock.
        case release(isStored: Bool)
        /// Give the value to the requests that joined before the flight was closed, and the lead to one of the others.
        case handOver
        /// Look for an expired value to return in place of the error.
        case fallBack
        /// The request is over.
        case finish
    }

    /// The outcome of an action.
    package enum Event: Sendable, Hashable {
        /// There is a usable value.
        case hit
        /// There is a usable value, and it is time to refresh it.
        case agingHit
        /// A value was stored meanwhile; look it up after the lock is released.
        case storedMeanwhile
        case miss
        /// This request leads the flight.
        case leads
        /// Another request leads the flight.
        case joined
        /// The outcome of an attempt at the lock.
        case attempted(FlightLock.Attempt)
        /// The cache can't be used or has no locks: it is full, read-only or closed.
        case unavailable
        /// The wait limit has passed.
        case timedOut
        /// The task was cancelled while it waited.
        case cancelled
        case computed
        /// The computation failed.
        case failed
        case stored
        /// The value was not stored for other processes: storing failed, or was not intended.
        case unstored
        /// The action was carried out; it has no other outcome.
        case done
    }

    private enum Ending: Hashable {
        case value, elsewhere, failure, timeout, cancellation
    }

    package let kind: Kind
    /// The next action.
    package private(set) var action: Action
    /// The number of this request's waits that have timed out.
    package private(set) var impatience = 0
    /// Whether this request leads a flight.
    package private(set) var isLeading: Bool
    /// Whether this request holds the lock.
    package private(set) var isHolding = false
    /// Whether the value was computed but not stored for other processes, by this process or the one that it waited for.
    private var isUnstored = false
    /// How the request ends once it has released the lock and handed over the lead.
    private var ending = Ending.value

    /// Creates a course that is at its first action.
    package init(_ kind: Kind) {
        self.kind = kind
        isLeading = kind == .refresh
        action = isLeading ? .attempt : .look
    }

    /// Advances to the next action.
    package mutating func proceed(_ event: Event) {
        action = next(event)
    }

    private mutating func next(_ event: Event) -> Action {
        switch event {
        case .hit: return end(.value)
        case .agingHit:
            ending = .value
            return .refresh
        case .storedMeanwhile: return end(.elsewhere)
        case .miss: return afterMiss()
        case .leads:
            isLeading = true
            // After a wait has timed out, the request does not try the lock: it computes in parallel with the lock's
            // holder.
            return impatience == 0 ? .attempt : .lookAgain
        case .joined: return .wait
        case .attempted(let attempt): return afterAttempt(attempt)
        case .unavailable:
            isHolding = false
            return kind == .refresh ? end(.value) : .compute
        case .timedOut: return end(.timeout)
        case .cancelled: return end(.cancellation)
        case .computed: return .store
        case .failed: return end(.failure)
        case .stored, .unstored:
            isUnstored = event == .unstored
            return end(.value)
        case .done: return action == .pause ? .attempt : unwound()
        }
    }

    private func afterMiss() -> Action {
        switch action {
        // There is no value yet, or this request can't use the leader's value.
        case .look, .wait: .enter
        case .fallBack: .finish
        // If another process could not store the value, no process can. This request computes without the lock: otherwise
        // the processes would compute one after another, and none could store its value.
        default: isHolding || isUnstored || impatience > 0 ? .compute : .attempt
        }
    }

    private mutating func afterAttempt(_ attempt: FlightLock.Attempt) -> Action {
        isUnstored = false
        switch attempt {
        case .acquired:
            isHolding = true
            return .lookAgain
        case .held: return kind == .refresh ? end(.value) : .pause
        case .ended(let isUnstored):
            if kind == .refresh { return end(.value) }
            self.isUnstored = isUnstored
            return .lookAgain
        }
    }

    private mutating func end(_ ending: Ending) -> Action {
        self.ending = ending
        return unwound()
    }

    /// Returns the next action towards the end: release the lock, then hand over the lead, and then end as decided.
    private mutating func unwound() -> Action {
        if isHolding {
            isHolding = false
            return .release(isStored: !isUnstored)
        }
        if isLeading {
            isLeading = false
            return .handOver
        }
        if kind == .refresh { return .finish }
        switch ending {
        case .value: return .finish
        case .elsewhere: return .look
        case .failure: return .fallBack
        case .timeout:
            if kind == .valueInTime { return .finish }
            impatience += 1
            return .enter
        case .cancellation: return kind == .value ? .compute : .finish
        }
    }
}
