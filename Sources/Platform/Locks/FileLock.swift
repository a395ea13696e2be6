// SPDX-License-Identifier: Apache-2.0

/// The mode in which a lock is held.
package enum LockMode: Sendable {
    /// Shared with other holders, in this process and others.
    case shared
    /// Without any other holder.
    case exclusive
}

/// A flock(2) that the threads of a process can use together.
///
/// flock belongs to the open file description: two threads that lock one descriptor convert each other's lock instead of
/// waiting. So this class counts the threads that share the lock. The first sharer takes the kernel's lock, and the last
/// sharer releases it. An exclusive holder excludes the other threads of the process before it requests the kernel's
/// lock. The kernel releases the lock of a process that dies.
///
/// While another process blocks an exclusive waiter, the waiter and the sharers of its own process take turns.
///
/// Two `FileLock`s on one file exclude each other, also within a process.
///
/// The kernel lets new sharers join, so continuously overlapping sharers in several processes would starve an exclusive
/// waiter. If the processes share a word for the lock, the waiter uses this word to reserve the lock for the next few
/// milliseconds, and newcomers yield to the waiter.
package final class FileLock: Sendable {
    /// The number of sharers that may join one hold of the kernel's lock before newcomers wait until it is released.
    ///
    /// Without a limit, overlapping threads would starve another process's exclusive waiter.
    ///
    /// With 64 the kernel's share of the cost is negligible (0.7 µs in 64 uses).
    static let sharersPerStay = 64

    /// The pause between attempts to get the kernel's lock.
    ///
    /// Sharers in other processes leave the lock free for microseconds at a time. The more often an exclusive waiter
    /// tries, the sooner it hits such a gap.
    static let longestPause: Duration = .microseconds(500)

    /// How long exclusive waiters wait before they reserve the lock; usually the lock is free sooner.
    static let askAfter: Duration = .milliseconds(2)
    /// How long newcomers keep away after each reservation.
    ///
    /// It is ten times the pause between attempts. If the waiter dies, newcomers resume after this time.
    static let wantedMilliseconds: UInt64 = 5
    /// The largest plausible distance of a reservation into the future.
    ///
    /// A later time was written before a reboot, when the clock had another origin.
    static let farthestMilliseconds: UInt64 = 50
    /// The longest time that a newcomer keeps away, so that exclusive waiters that take turns do not starve it.
    ///
    /// Also the longest turn and the longest pause of an exclusive waiter.
    static let longestCourtesy: Duration = .milliseconds(50)
    /// How long an exclusive waiter assumes that newcomers delay it.
    ///
    /// A longer wait has another cause, such as a holder that is stopped. From then on the waiter keeps newcomers out for
    /// only a tenth of the time.
    static let newcomersMatterFor: Duration = .milliseconds(500)

    private struct State {
        var sharers = 0
        var joined = 0
        var isExclusive = false
        var exclusiveWaiters = 0
        /// Whether a first sharer is waiting for another process; the other sharers wait for its result.
        var isEntering = false

        var admitsSharer: Bool {
            !isExclusive && !isEntering && exclusiveWaiters == 0
                && (sharers == 0 || joined < FileLock.sharersPerStay)
        }
    }

    private let descriptor: FileDescriptor
    private let owner = processGeneration
    private let state = Monitored(State())
    private let wanted: @Sendable () -> MappedWord?

    /// Creates a lock that owns `descriptor`, a lock file that is open for reading and writing.
    ///
    /// `wanted` returns the word that all processes share for this lock, or nil if they share none. The word holds the
    /// time until which an exclusive waiter reserves the lock, in milliseconds of CLOCK_MONOTONIC.
    package init(
        owning descriptor: consuming FileDescriptor,
        wanted: @escaping @Sendable () -> MappedWord? = { nil }
    ) {
        self.descriptor = descriptor
        self.wanted = wanted
    }

    /// Waits until the lock is held in `mode`.
    ///
    /// Every call must be balanced by a call of ``unlock(_:)``.
    ///
    /// Without contention the first sharer makes one `flock` call; sharers that join it make none.
    ///
    /// - Throws: ``Errno/timedOut`` if the lock was not acquired within `patience`, for instance because a holder is
    ///   stopped; other errors of flock(2), such as ENOLCK.
    package func lock(_ mode: LockMode, patience: Duration) throws(Errno) {
        // The clock is read only if the thread has to wait.
        if mode == .shared, try state.withLock({ (state) throws(Errno) in try enter(&state) }) == true {
            return
        }
        let deadline = ContinuousClock.now + .nanoseconds(patience.saturatingNanoseconds)
        switch mode {
        case .shared: try lockShared(until: deadline)
        case .exclusive: try lockExclusive(until: deadline)
        }
    }

    /// Releases the lock acquired by ``lock(_:patience:)``.
    ///
    /// It does nothing in a child that was forked while the lock was held, because the lock belongs to the parent.
    package func unlock(_ mode: LockMode) {
        guard processGeneration == owner else { return }
        let isFree = state.withLock { state in
            switch mode {
            case .shared:
                state.sharers -= 1
                if state.sharers > 0 { return false }
                state.joined = 0
            case .exclusive:
                state.isExclusive = false
            }
            // Called inside the monitor, because no other thread of this process may acquire the lock before this call.
            descriptor.unlock()
            return true
        }
        if isFree { state.wakeAll() }
    }

    private func lockShared(until deadline: ContinuousClock.Instant) throws(Errno) {
        if try joinSharers(until: deadline) { return }
        // Waits outside the monitor, so that other threads can observe their own deadlines.
        var isSharing = false
        defer { endEntering(isSharing: isSharing) }
        let courtesy = min(deadline, .now + Self.longestCourtesy)
        while isWanted, .now < courtesy { sleepThread(for: Self.longestPause) }
        try descriptor.lock(.shared, until: deadline, longestPause: Self.longestPause)
        isSharing = true
    }

    /// Waits to join the sharers; returns false if the caller must take the kernel's lock, because another process holds
    /// or reserves it.
    ///
    /// If the result is false, the caller must then call ``endEntering(isSharing:)``.
    private func joinSharers(until deadline: ContinuousClock.Instant) throws(Errno) -> Bool {
        let isJoined = try state.wait(until: deadline) { (state) throws(Errno) -> Bool? in
            let isJoined = try enter(&state)
            if isJoined == false { state.isEntering = true }
            return isJoined
        }
        guard let isJoined else { throw .timedOut }
        return isJoined
    }

    /// Makes one attempt to share the lock; returns nil if a thread of this process blocks newcomers, false if another
    /// process does.
    private func enter(_ state: inout State) throws(Errno) -> Bool? {
        guard state.admitsSharer else { return nil }
        if state.sharers == 0 {
            if isWanted { return false }
            guard try descriptor.tryLock(.shared) else { return false }
        }
        state.sharers += 1
        state.joined += 1
        return true
    }

    private func endEntering(isSharing: Bool) {
        state.withLock { state in
            state.isEntering = false
            if isSharing {
                state.sharers += 1
                state.joined += 1
            }
        }
        state.wakeAll()
    }

    /// Waits for the exclusive lock in turns, and admits sharers of this process between the turns.
    ///
    /// While another process shares the lock, these sharers cause no delay: the exclusive lock is unavailable anyway.
    private func lockExclusive(until deadline: ContinuousClock.Instant) throws(Errno) {
        let begin = ContinuousClock.now
        var turn = Self.askAfter
        var isAsking = false
        while true {
            let start = ContinuousClock.now
            try claimExclusive(until: deadline)
            var isHeld = false
            do {
                defer { if !isHeld { endClaim() } }
                isHeld = try waitExclusive(until: min(deadline, .now + turn), isAsking: isAsking)
            }
            if isHeld { return }
            let now = ContinuousClock.now
            guard now < deadline else { throw .timedOut }
            isAsking = true
            let isFutile = now - begin > Self.newcomersMatterFor
            turn = isFutile ? Self.askAfter : min(turn * 2, Self.longestCourtesy)
            let pause = min((now - start) * (isFutile ? 9 : 1), Self.longestCourtesy)
            sleepThread(for: min(pause, deadline - now))
        }
    }

    private func endClaim() {
        state.withLock { $0.isExclusive = false }
        state.wakeAll()
    }

    /// Waits for the kernel's lock, with the other threads of this process excluded; returns false if it was not acquired.
    private func waitExclusive(until end: ContinuousClock.Instant, isAsking: Bool) throws(Errno) -> Bool {
        if !isAsking {
            return try descriptor.tryLock(.exclusive, until: end, longestPause: Self.longestPause)
        }
        while true {
            // Loaded each time, because the word may become available late or be replaced.
            let word = wanted()
            let until = Timestamp.monotonicMilliseconds + Self.wantedMilliseconds
            word?.value = until
            let part = min(end, .now + .milliseconds(Int64(Self.wantedMilliseconds)) / 2)
            let isHeld = try descriptor.tryLock(.exclusive, until: part, longestPause: Self.longestPause)
            if isHeld || .now >= end {
                word?.replace(until, by: 0)
                return isHeld
            }
        }
    }

    /// Whether an exclusive waiter, in any process, has reserved the lock, so that newcomers must yield.
    private var isWanted: Bool {
        guard let until = wanted()?.value, until != 0 else { return false }
        let now = Timestamp.monotonicMilliseconds
        return until > now && until - now <= Self.farthestMilliseconds
    }

    private func claimExclusive(until deadline: ContinuousClock.Instant) throws(Errno) {
        state.withLock { $0.exclusiveWaiters += 1 }
        let isClaimed: Bool? = state.wait(until: deadline) { state in
            if state.sharers > 0 || state.isExclusive || state.isEntering { return nil }
            state.isExclusive = true
            return true
        }
        state.withLock { $0.exclusiveWaiters -= 1 }
        if isClaimed == nil {
            // Wakes the sharers that yielded to this waiter.
            state.wakeAll()
            throw .timedOut
        }
    }
}
