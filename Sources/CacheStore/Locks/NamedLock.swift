// SPDX-License-Identifier: Apache-2.0

import Platform

/// A lock with a name that callers choose, and with one or more permits, each of which is a ``FlightLock``.
///
/// A caller that specifies N permits gets the first free one of the first N permits. So callers that specify fewer permits
/// never hold more than that number at once. Between attempts, the files of permits that other callers hold stay open. Used
/// by one task at a time.
package struct NamedLock: Sendable {
    /// The longest wait before the next attempt: a waiter acquires the lock within 20 ms of its release.
    ///
    /// An attempt at a permit that is still held is one system call. Locks are held longer than values take to compute, so
    /// attempts are less frequent than for values (``FlightLock/longestPause``).
    package static let longestPause: Duration = .milliseconds(20)

    private let permits: [FlightLock]

    /// Creates a lock; opens no file yet.
    ///
    /// - Parameters:
    ///   - name: SHA-256 of the lock's name.
    ///   - permits: how many can be held at once, 1 to ``StoreLayout/mostPermits``.
    package init(_ name: Digest, permits: Int, in directory: StoreDirectory) {
        self.permits = (0..<permits).map { FlightLock(permit: $0, of: name, in: directory) }
    }

    /// Returns a permit if one is free, without waiting; nil if all are held.
    ///
    /// As many system calls for each permit as ``FlightLock/attempt()`` makes, until one is free.
    ///
    /// - Throws: the errors of ``FlightLock/attempt()``.
    package func attempt() throws(CacheError) -> FlightLock? {
        try attempt(givesWay: false, waits: false).permit
    }

    /// Returns a free permit, but can leave a permit to other callers that wait for it.
    ///
    /// This is for the first attempt of a caller that is ready to wait: otherwise a caller that acquires the lock again at
    /// once would leave the others no time to find it free.
    ///
    /// - Parameters:
    ///   - givesWay: whether to leave a permit to callers that wait for it.
    ///   - waits: whether the caller will try again until it has a permit.
    /// - Returns: the permit, and whether one was left to other callers.
    package func attempt(
        givesWay: Bool,
        waits: Bool
    ) throws(CacheError) -> (permit: FlightLock?, isWanted: Bool) {
        var isWanted = false
        for permit in permits {
            var outcome = try permit.attempt(givesWay: givesWay)
            // The permit was released meanwhile: another file has the name now, or none.
            while case .ended? = outcome { outcome = try permit.attempt(givesWay: givesWay) }
            isWanted = isWanted || outcome == nil
            guard outcome == .acquired else { continue }
            for other in permits where other !== permit { other.abandon() }
            return (permit, false)
        }
        // Mark the permits only after all of them were tried: a caller that gets one waits for none.
        if waits { for permit in permits { permit.noteWait() } }
        return (nil, isWanted)
    }

    /// Makes the last attempt of a caller that no longer waits.
    ///
    /// A permit whose file a collection is checking does not count as held. As many system calls as ``attempt()`` makes,
    /// and two more for each held permit.
    package func lastAttempt() throws(CacheError) -> FlightLock? {
        let end = ContinuousClock.now + Self.longestLook
        while true {
            if let permit = try attempt() { return permit }
            var isLookedAt = false
            for permit in permits where try permit.isOnlyLookedAt() { isLookedAt = true }
            guard isLookedAt, .now < end else { return nil }
            sleepThread(for: .microseconds(50))
        }
    }

    /// How long a new caller leaves a lock to the waiters: they try again within ``longestPause``.
    package static let courtesy: Duration = .milliseconds(25)
    /// How long to wait for collections: they lock a file for microseconds, unless they are stopped meanwhile.
    private static let longestLook: Duration = .milliseconds(100)

    /// Closes the files of unsuccessful attempts.
    package func abandon() {
        for permit in permits { permit.abandon() }
    }

    /// A holder of a permit, according to the files; nil before an attempt.
    ///
    /// One system call for each permit, until a holder is found.
    package var holder: ComputingProcess? {
        for permit in permits {
            if let holder = permit.holder { return holder }
        }
        return nil
    }
}
