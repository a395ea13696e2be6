// SPDX-License-Identifier: Apache-2.0

import Platform

/// A lock that callers name, with one or more permits: for each a file of its own, which is locked as that of
/// a flight.
///
/// Whoever asks for so many permits gets the first that is free of so many; so those who ask for fewer take
/// no more of them at once. Between attempts the files that are waited for stay open. Used by one task at a
/// time.
package struct NamedLock: Sendable {
    /// How long to wait at most before the next attempt: whoever waits has the lock within 20 ms of being
    /// free.
    ///
    /// An attempt at a permit that is still held is one system call. Locks are held for longer than values
    /// are computed, so the attempts are fewer (``FlightLock/longestPause``).
    package static let longestPause: Duration = .milliseconds(20)

    private let permits: [FlightLock]

    /// Opens nothing yet.
    ///
    /// - Parameters:
    ///   - name: SHA-256 of the lock's name.
    ///   - permits: how many can be held at once, 1 to ``StoreLayout/mostPermits``.
    package init(_ name: Digest, permits: Int, in directory: StoreDirectory) {
        self.permits = (0..<permits).map { FlightLock(permit: $0, of: name, in: directory) }
    }

    /// A permit if one is free, without waiting; nil if all are held.
    ///
    /// As many system calls for each permit as ``FlightLock/attempt()`` makes, until one is free.
    ///
    /// - Throws: what ``FlightLock/attempt()`` throws.
    package func attempt() throws(CacheError) -> FlightLock? {
        try attempt(givesWay: false, waits: false).permit
    }

    /// The same; a permit that is free, and that others wait for, is left to them.
    ///
    /// For the first attempt of who is ready to wait: else one that takes the lock again at once would leave the others no
    /// time to find it free.
    ///
    /// - Parameters:
    ///   - givesWay: whether it is left to them.
    ///   - waits: whether the caller will try again until it has one.
    /// - Returns: the permit, and whether one was left to others.
    package func attempt(
        givesWay: Bool,
        waits: Bool
    ) throws(CacheError) -> (permit: FlightLock?, isWanted: Bool) {
        var isWanted = false
        for permit in permits {
            var outcome = try permit.attempt(givesWay: givesWay)
            // Released meanwhile: the file that has the name now is another one.
            while case .ended? = outcome { outcome = try permit.attempt(givesWay: givesWay) }
            isWanted = isWanted || outcome == nil
            guard outcome == .acquired else { continue }
            for other in permits where other !== permit { other.abandon() }
            return (permit, false)
        }
        // Not before all of them were tried: who gets another one waits for none.
        if waits { for permit in permits { permit.noteWait() } }
        return (nil, isWanted)
    }

    /// The last attempt of who waits no longer: a permit whose file a collection looks at is not taken for one that is
    /// held.
    ///
    /// As ``attempt()``, and two system calls more for each permit that is held.
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

    /// How long who comes leaves a lock to those who wait for it: they try again within ``longestPause``.
    package static let courtesy: Duration = .milliseconds(25)
    /// A collection has a file for microseconds; one that is stopped meanwhile is not waited for.
    private static let longestLook: Duration = .milliseconds(100)

    /// Closes the files of attempts in vain.
    package func abandon() {
        for permit in permits { permit.abandon() }
    }

    /// Somebody who holds a permit, as far as the files tell; nil before an attempt.
    ///
    /// One system call for each permit, until one tells.
    package var holder: ComputingProcess? {
        for permit in permits {
            if let holder = permit.holder { return holder }
        }
        return nil
    }
}
