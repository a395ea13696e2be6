// SPDX-License-Identifier: Apache-2.0

package import CacheStore

/// The course of one request for a value that is computed if it is missing: what to do next, given what has happened.
///
/// Look; join the flight of this process, or lead it; as its leader get the lock among the processes; look again;
/// compute; store; release the lock; hand over. A pure state machine: no input or output, no clock, no locks. The
/// blocking and the asynchronous forms of `value(forKey:)`, `hit(forKey:)` and `values(forKeys:)`, and `diskcache run`,
/// carry out its actions.
package struct FlightCourse: Sendable, Hashable {
    /// What a request is for.
    package enum Kind: Sendable, Hashable {
        /// Gets a value: one that has waited too long, or is cancelled while it waits, computes for itself.
        case value
        /// The same, except that it ends without a value if it is cancelled while it waits.
        case cancellable
        /// The same, except that it ends without a value also if it has waited too long.
        case valueInTime
        /// Replaces a value in the background, unless another caller does. It leads its flight from the start.
        case refresh
    }

    /// What to do next.
    package enum Action: Sendable, Hashable {
        /// Look for the value, which may be stale.
        case look
        /// Start a refresh of the value that was found.
        case refresh
        /// Join the flight of this process, or begin it.
        case enter
        /// Wait for the leader of the flight.
        case wait
        /// Try to get the lock among the processes.
        case attempt
        /// Wait a moment for the process that holds the lock.
        case pause
        /// Close the flight to newcomers and look whether the value was stored since the first look.
        case lookAgain
        /// Run the computation.
        case compute
        /// Close the flight once more, if this request leads it, and store the computed value.
        case store
        /// Release the lock.
        case release(isStored: Bool)
        /// Give the value to those who joined before the flight was closed, and the lead to one of the others.
        case handOver
        /// Look for an expired value to use in place of the error.
        case fallBack
        /// Nothing: the request is over.
        case finish
    }

    /// What came of an action.
    package enum Event: Sendable, Hashable {
        /// There is a value to use.
        case hit
        /// There is a value to use, and it is time to refresh it.
        case agingHit
        /// There is a value, to be looked for once the lock is released.
        case storedMeanwhile
        case miss
        /// This request leads the flight.
        case leads
        /// Another request leads the flight.
        case joined
        /// The outcome of an attempt at the lock.
        case attempted(FlightLock.Attempt)
        /// The cache can't be used, or has no locks: it is full, read-only, closed.
        case unavailable
        /// The limit for waiting has passed.
        case timedOut
        /// The task was cancelled while it waited.
        case cancelled
        case computed
        /// The computation failed.
        case failed
        case stored
        /// The value could not be stored.
        case unstored
        /// The action, which has no other outcome, was carried out.
        case done
    }

    private enum Ending: Hashable {
        case value, elsewhere, failure, timeout, cancellation
    }

    package let kind: Kind
    /// What to do next.
    package private(set) var action: Action
    /// How often this request has waited in vain.
    package private(set) var impatience = 0
    /// Whether this request leads a flight.
    package private(set) var isLeading: Bool
    /// Whether this request holds the lock.
    package private(set) var isHolding = false
    /// Whether the value was computed and could not be stored, by this process or by the one that was waited for.
    private var isUnstored = false
    /// How it will end, once the lock is released and the lead handed over.
    private var ending = Ending.value

    /// The beginning.
    package init(_ kind: Kind) {
        self.kind = kind
        isLeading = kind == .refresh
        action = isLeading ? .attempt : .look
    }

    /// Goes on to the next action.
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
            // A request that has waited in vain computes beside the one that has the lock.
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
        // What the leader had to give was of no use to this request.
        case .look, .wait: .enter
        case .fallBack: .finish
        // If the other process could not store the value, nobody can: one after another would try in vain.
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

    /// Gives up what this request has, one thing after another, and then ends as decided.
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
