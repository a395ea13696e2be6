// SPDX-License-Identifier: Apache-2.0

import CPlatform
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

    /// One attempt at a byte of a file that is open for writing, which need not be there; false where another open file
    /// description holds it.
    ///
    /// All who use this one hold it together. flock(2) on the same file is another lock.
    ///
    /// C: `fcntl(F_OFD_SETLK)`.
    package func tryLock(byte: UInt64) throws(Errno) -> Bool {
        do throws(Errno) {
            try change(byte: byte, to: Int16(F_WRLCK))
            return true
        } catch {
            if error == .wouldBlock || error == .accessDenied { return false }
            throw error
        }
    }

    /// Gives that byte back.
    ///
    /// C: `fcntl(F_OFD_SETLK)`.
    package func unlock(byte: UInt64) throws(Errno) {
        try change(byte: byte, to: Int16(F_UNLCK))
    }

    private func change(byte: UInt64, to type: Int16) throws(Errno) {
        var range = flock()
        range.l_type = type
        range.l_whence = Int16(SEEK_SET)
        range.l_start = off_t(truncatingIfNeeded: byte >> 1)
        range.l_len = 1
        try systemCall(.lock) { unsafe fcntl(rawValue, cplatform_F_OFD_SETLK, &range) }
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
