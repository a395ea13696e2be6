// SPDX-License-Identifier: Apache-2.0

import CPlatform
import Glibc

extension FileDescriptor {
    /// Makes one attempt to lock the file; returns false if another open file description holds the lock.
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

    /// Makes one attempt to lock a byte of a file that is open for writing; returns false if another open file
    /// description holds the lock.
    ///
    /// The byte may lie beyond the end of the file. The kernel's offsets have 63 bits, so the lock is at half of `byte`:
    /// 2 *n* and 2 *n* + 1 share a lock. All users of this open file description hold the lock together. The lock is
    /// independent of flock(2) on the same file.
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

    /// Unlocks the byte.
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

    /// Tries to lock the file, with pauses between the attempts, until `deadline`; returns false if no attempt succeeds.
    ///
    /// flock(2) itself has no time limit.
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

    /// Locks the file as ``tryLock(_:until:longestPause:)`` does, and throws if no attempt succeeds.
    ///
    /// - Throws: ``Errno/timedOut``.
    package func lock(
        _ mode: LockMode,
        until deadline: ContinuousClock.Instant,
        longestPause: Duration = Backoff.longest
    ) throws(Errno) {
        guard try tryLock(mode, until: deadline, longestPause: longestPause) else { throw .timedOut }
    }

    /// Releases the lock.
    ///
    /// C: `flock(LOCK_UN)`, which can't fail on an open descriptor. If other code in the program has closed the
    /// descriptor, as daemons do at startup, the kernel has already released the lock.
    package func unlock() {
        _ = SystemCall.lock.isRefused
        _ = flock(rawValue, LOCK_UN)
    }
}
