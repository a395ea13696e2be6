// SPDX-License-Identifier: Apache-2.0

/// How a lock is held.
package enum LockMode: Sendable {
    /// Together with other sharers, in this process and others.
    case shared
    /// Alone.
    case exclusive
}

/// A flock(2) that the threads of a process can use together.
///
/// flock belongs to the open file description: two threads that lock one descriptor convert each
/// other's lock instead of waiting. So threads are counted here, in front of the kernel's lock: the
/// first sharer takes it, the last gives it back, and an exclusive holder is alone in the process before
/// it asks the other processes. The kernel releases the lock of a process that dies.
///
/// As long as another process keeps an exclusive waiter out, he and the sharers of his own process take turns.
///
/// Two `FileLock`s on one file exclude each other, also within a process.
///
/// Sharers of several processes that overlap without end would keep an exclusive waiter out, as the kernel
/// lets newcomers join. Where the processes share a word for the lock, he asks in it for the next moments, and
/// newcomers let him go first.
package final class FileLock: Sendable {
    /// Sharers that may join one stay of the kernel's lock before newcomers wait for it to be given back:
    /// without a bound, threads that overlap would keep another process's exclusive holder out for ever.
    ///
    /// 64 makes the kernel's share of the cost vanish (0.7 µs in 64 uses).
    static let sharersPerStay = 64

    /// Pause between attempts to get the kernel's lock.
    ///
    /// Sharers of other processes leave gaps of microseconds, and an exclusive waiter has to hit one: the
    /// more often it tries, the sooner.
    static let longestPause: Duration = .microseconds(500)

    /// Exclusive waiters ask for the lock when they have waited so long: usually it is free sooner.
    static let askAfter: Duration = .milliseconds(2)
    /// So long newcomers keep away after each time that he asks, ten times as long as he pauses: should he
    /// die, they go on then.
    static let wantedMilliseconds: UInt64 = 5
    /// A time further ahead is from before the machine was started anew, when the clock was another.
    static let farthestMilliseconds: UInt64 = 50
    /// A newcomer keeps away no longer, so that exclusive waiters who take turns do not keep it out for ever.
    static let longestCourtesy: Duration = .milliseconds(50)
    /// Whoever waits longer waits for a holder that is stopped, say, and not for newcomers: from then on those are
    /// kept out for a tenth of the time.
    static let newcomersMatterFor: Duration = .milliseconds(500)

    private struct State {
        var sharers = 0
        var joined = 0
        var isExclusive = false
        var exclusiveWaiters = 0
        /// A first sharer waits for another process; the others wait for what it gets.
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

    /// Takes over a descriptor of the lock file, opened for reading and writing.
    ///
    /// `wanted` gives the word that all processes that use the lock share for it, if they do: until when an
    /// exclusive waiter wants it, in milliseconds of CLOCK_MONOTONIC.
    package init(
        owning descriptor: consuming FileDescriptor,
        wanted: @escaping @Sendable () -> MappedWord? = { nil }
    ) {
        self.descriptor = descriptor
        self.wanted = wanted
    }

    /// Waits until the lock is held in `mode`.
    ///
    /// Every call needs its ``unlock(_:)``.
    ///
    /// Uncontended, one `flock` for the first sharer of a stay and none for those who join.
    ///
    /// - Throws: ``Errno/timedOut`` where it was not to be had within `patience`, for instance because a
    ///   holder is stopped; other errors of flock(2), such as ENOLCK.
    package func lock(_ mode: LockMode, patience: Duration) throws(Errno) {
        // The clock is read only by who has to wait.
        if mode == .shared, try state.withLock({ (state) throws(Errno) in try enter(&state) }) == true {
            return
        }
        let deadline = ContinuousClock.now + .nanoseconds(patience.saturatingNanoseconds)
        switch mode {
        case .shared: try lockShared(until: deadline)
        case .exclusive: try lockExclusive(until: deadline)
        }
    }

    /// Gives back what ``lock(_:patience:)`` got; nothing in a child that was forked meanwhile, as it is the parent's.
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
            // Inside, as the next one of this process must not have it before.
            descriptor.unlock()
            return true
        }
        if isFree { state.wakeAll() }
    }

    private func lockShared(until deadline: ContinuousClock.Instant) throws(Errno) {
        if try joinSharers(until: deadline) { return }
        // Waited for outside the monitor: others keep their own deadlines.
        var isSharing = false
        defer { endEntering(isSharing: isSharing) }
        let courtesy = min(deadline, .now + Self.longestCourtesy)
        while isWanted, .now < courtesy { sleepThread(for: Self.longestPause) }
        try descriptor.lock(.shared, until: deadline, longestPause: Self.longestPause)
        isSharing = true
    }

    /// False: the caller is to take the kernel's lock, which another process holds, and say how that ended.
    private func joinSharers(until deadline: ContinuousClock.Instant) throws(Errno) -> Bool {
        let isJoined = try state.wait(until: deadline) { (state) throws(Errno) -> Bool? in
            let isJoined = try enter(&state)
            if isJoined == false { state.isEntering = true }
            return isJoined
        }
        guard let isJoined else { throw .timedOut }
        return isJoined
    }

    /// One attempt to share the lock; nil where this process keeps newcomers out, false where another process
    /// does.
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

    /// Waits in turns, and lets the sharers of this process go on in between: as long as another process shares it
    /// they are in nobody's way.
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

    /// Waits for the kernel's lock, with the threads of this process kept out; false where it was not to be had.
    private func waitExclusive(until end: ContinuousClock.Instant, isAsking: Bool) throws(Errno) -> Bool {
        if !isAsking {
            return try descriptor.tryLock(.exclusive, until: end, longestPause: Self.longestPause)
        }
        while true {
            // Looked up each time: the word may be given to the lock only now, or be another one.
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

    /// Whether an exclusive waiter, of any process, has asked newcomers to let him go first.
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
            // Sharers held back for this one can go on.
            state.wakeAll()
            throw .timedOut
        }
    }
}
