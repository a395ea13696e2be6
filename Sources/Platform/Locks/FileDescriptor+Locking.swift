// SPDX-License-Identifier: Apache-2.0

import Glibc

extension FileDescriptor {
    /// One attempt; false where another open file description holds it.
    ///
    /// C: `flock(LOCK_NB)`.
    package func tryLock(_ mode: LockMode) throws(Errno) -> Bool {
        do throws(Errno) {
            try systemCall(.lock) { flock(rawValue, (mode == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB) }
            return true
        } catch {
            if error == .wouldBlock { return false }
            throw error
        }
    }

    /// Attempts with pauses in between until `deadline`; false where the lock could not be had.
    ///
    /// flock(2) itself knows no time limit.
    package func tryLock(
        _ mode: LockMode,
        until deadline: ContinuousClock.Instant,
        longestPause: Duration = Backoff.longest
    ) throws(Errno) -> Bool {
        if try tryLock(mode) { return true }
        var backoff = Backoff(upTo: longestPause)
        while ContinuousClock.now < deadline {
            sleepThread(for: backoff.next())
            if try tryLock(mode) { return true }
        }
        return false
    }

    /// The same for callers that can't do without the lock.
    ///
    /// - Throws: ``Errno/timedOut``.
    package func lock(
        _ mode: LockMode,
        until deadline: ContinuousClock.Instant,
        longestPause: Duration = Backoff.longest
    ) throws(Errno) {
        guard try tryLock(mode, until: deadline, longestPause: longestPause) else { throw .timedOut }
    }

    /// Gives the lock back.
    ///
    /// C: `flock(LOCK_UN)`, which can't fail on an open descriptor; with one that the program has closed behind our back,
    /// as daemons do when they start, the lock has gone already.
    package func unlock() {
        _ = SystemCall.lock.isRefused
        _ = flock(rawValue, LOCK_UN)
    }
}
