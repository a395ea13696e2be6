// SPDX-License-Identifier: Apache-2.0

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
        for permit in permits {
            var outcome = try permit.attempt()
            // Released meanwhile: the file that has the name now is another one.
            while case .ended = outcome { outcome = try permit.attempt() }
            guard outcome == .acquired else { continue }
            for other in permits where other !== permit { other.abandon() }
            return permit
        }
        return nil
    }

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
