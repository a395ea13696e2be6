// SPDX-License-Identifier: Apache-2.0

import Platform

/// The lock of the caller that computes a key's value, exclusive among all threads and processes; or a permit of a
/// ``NamedLock``.
///
/// The lock is a flock(2) on `locks/flight-<64 hex>`, named by the key's digest, or on `locks/lock-<64 hex>-<number>`. When
/// its holder dies, at whatever instruction, the kernel releases the lock for the next caller. That caller takes over the
/// remaining file, or a sweep deletes it. Only the holder unlinks the file. If this object is deallocated without
/// ``release(isStored:)``, the lock is free and the file stays.
///
/// Between attempts, the file of the lock that another caller holds stays open, so that a waiter detects how that very
/// computation ended. Used by one task at a time, on any thread.
package final class FlightLock: Sendable {
    /// The outcome of an attempt.
    package enum Attempt: Sendable, Hashable {
        /// The lock was free, or its holder had died; it is held until ``release(isStored:)``.
        case acquired
        /// Another caller holds the lock: try again later.
        case held
        /// The holder has released the lock: the value may be present now; if not, try again at once.
        ///
        /// If `isUnstored` is true, the value was computed but could not be stored, and the next caller is unlikely to
        /// succeed either.
        case ended(isUnstored: Bool)
    }

    /// The longest wait before the next attempt, so that a value is found within 10 ms of its publication.
    ///
    /// An attempt at a lock that is still held is one system call.
    package static let longestPause: Duration = .milliseconds(4)

    private struct State: ~Copyable {
        /// The file of the lock that this object waits for or holds.
        var file: FileDescriptor?
        var isHolding = false
        /// Whether this object has marked the file to show that it waits.
        var isNoted = false
    }

    private let directory: StoreDirectory
    private let path: RelativePath
    private let isPermit: Bool
    private let owner = processGeneration
    private let state = Locked(State())

    /// Creates the lock of a key; opens no file yet.
    package init(of key: Digest, in directory: StoreDirectory) {
        self.directory = directory
        path = StoreLayout.flightName(key)
        isPermit = false
    }

    /// Creates a permit of the lock with this name; opens no file yet.
    init(permit number: Int, of name: Digest, in directory: StoreDirectory) {
        self.directory = directory
        path = StoreLayout.permitName(name, number)
        isPermit = true
    }

    /// Tries to acquire the lock; never waits.
    ///
    /// Seven system calls if it is free (`openat2`, `fstat`, `flock`, `fstat`, `fstatat`, `getpid`, `pwrite`), three if it
    /// is held, and one (`flock`) while it stays held by the same caller.
    ///
    /// - Throws: ``CacheError/Code/noSpace``, ``CacheError/Code/permissionDenied``, ``CacheError/Code/readOnly`` if the file
    ///   can't be created; other errors of open(2) and flock(2).
    package func attempt() throws(CacheError) -> Attempt {
        try attempt(givesWay: false) ?? .held
    }

    /// Tries to acquire the lock; returns nil if it is free, other callers wait for it, and `givesWay` is true.
    ///
    /// - Parameter givesWay: whether to leave the lock to waiters.
    func attempt(givesWay: Bool) throws(CacheError) -> Attempt? {
        try describing("lock", "\(directory.path)/\(StoreLayout.locks)/\(path)") { () throws(Errno) in
            try state.withLock { (state) throws(Errno) in try attempt(&state, givesWay) }
        }
    }

    /// Marks the file of a permit to show that the caller waits, so that its holder does not acquire it again at once.
    ///
    /// One system call, the first time. If the mode of the file can't be changed, the holder may acquire it again.
    func noteWait() {
        state.withLock { state in
            guard let file = state.file.take() else { return }
            if !state.isHolding, !exchange(&state.isNoted, with: true) {
                bestEffort { () throws(Errno) in try file.setMode(Self.wantedMode) }
            }
            state.file = consume file
        }
    }

    /// Returns whether the lock is held only by a collection that checks the file for a moment, or by another caller of this
    /// function.
    ///
    /// Two system calls.
    func isOnlyLookedAt() throws(CacheError) -> Bool {
        try describing("lock", "\(directory.path)/\(StoreLayout.locks)/\(path)") { () throws(Errno) in
            try state.withLock { (state) throws(Errno) in
                guard let file = state.file.take() else { return false }
                let isShared = try file.tryLock(.shared)
                if isShared { file.unlock() }
                state.file = consume file
                return isShared
            }
        }
    }

    /// A constant, because constructing an option set of another module takes three allocations.
    private static let opening: OpenFlags = [.readWrite, .create]

    private func attempt(_ state: inout State, _ givesWay: Bool) throws(Errno) -> Attempt? {
        if state.file == nil {
            state.file = try directory.locks.open(path, Self.opening, mode: FileMode.file)
            state.isNoted = false
        }
        guard let file = state.file.take() else { return .held }
        guard try file.tryLock(.exclusive) else {
            state.file = consume file
            return .held
        }
        let status = try file.status()
        let isMarked = status.permissions & Self.unstoredBit != 0
        let named = try directory.locks.presentStatus(of: path)
        guard named?.identity == status.identity else { return .ended(isUnstored: isMarked) }
        // The file still has its name, so the unstored mark is from a holder that died after setting it.
        let isWanted = status.permissions & Self.wantedBit != 0
        if isWanted, givesWay {
            file.unlock()
            state.file = consume file
            return nil
        }
        if isMarked || isWanted { try file.setMode(FileMode.file) }
        let holder = ComputingProcess(CurrentProcess.identifier, since: .now)
        // On a full disk the holder remains unknown, with no other effect.
        bestEffort { () throws(Errno) in try file.write(holder.line.span) }
        state.file = consume file
        state.isHolding = true
        return .acquired
    }

    /// Releases the lock if this object holds it: unlinks the file, then unlocks it.
    ///
    /// If this object only waits for the lock, it closes the file.
    ///
    /// In this order, no other caller can hold a file that is about to lose its name. Three system calls; four for a
    /// permit, whose file stays if another caller waits for it. In a child that was forked meanwhile this has no effect:
    /// the lock stays the parent's.
    ///
    /// - Parameter isStored: false if the value was computed and could not be stored. That takes one more system call, and
    ///   keeps waiters from computing one after another without being able to store the value either.
    package func release(isStored: Bool = true) {
        // Check this first, as in ``abandon()``. In a child, the file is closed when this object is deallocated.
        guard processGeneration == owner else { return }
        state.withLock { state in
            guard let file = state.file.take(), exchange(&state.isHolding, with: false) else { return }
            // If the mode can't be changed, the waiters compute unnecessarily.
            if !isStored { bestEffort { () throws(Errno) in try file.setMode(Self.unstoredMode) } }
            // If the file keeps its name, it is unlocked, and the next caller takes it over.
            if !isPermit || !Self.isWanted(file) {
                bestEffort { () throws(Errno) in try directory.locks.unlink(path) }
            }
            // Closing is not enough: a child that was forked meanwhile has the file open too, until it calls exec, and the
            // waiters would wait for it.
            file.unlock()
            file.close()
        }
    }

    /// Releases the lock if this object holds it, and leaves the file to the next caller, or to a sweep.
    ///
    /// If this object only waits for the lock, it closes the file. It never waits for the medium. Two system calls. In a
    /// child that was forked meanwhile it does nothing: the lock stays the parent's.
    package func abandon() {
        // Check this first: in a child, a thread that does not exist there may hold the mutex.
        guard processGeneration == owner else { return }
        state.withLock { state in
            guard let file = state.file.take() else { return }
            if exchange(&state.isHolding, with: false) { file.unlock() }
            file.close()
        }
    }

    /// Keeps the lock across exec, until all processes that inherit the file have ended.
    ///
    /// One system call.
    package func setInherited() throws(CacheError) {
        _ = try describing("keep the lock", "\(directory.path)/\(StoreLayout.locks)/\(path)") {
            () throws(Errno) in
            try state.withLock { (state) throws(Errno) in try state.file?.setInherited() }
        }
    }

    /// Permission bits that mean "not stored".
    ///
    /// A change of the mode needs no space on disk, which may be exhausted. If the holder dies before it unlinks the file,
    /// the bit does not keep other processes from opening the file.
    private static let unstoredMode = FileMode.file | unstoredBit
    private static let unstoredBit: UInt32 = 0o100

    /// Permission bits that mean that a process waits for a permit.
    private static let wantedMode = FileMode.file | wantedBit
    private static let wantedBit: UInt32 = 0o010

    private static func isWanted(_ file: borrowing FileDescriptor) -> Bool {
        let permissions = bestEffort { () throws(Errno) in try file.status().permissions }
        return (permissions ?? 0) & wantedBit != 0
    }

    /// The holder of the lock that this object waits for, according to the file and the kernel; nil before an attempt.
    ///
    /// Five system calls.
    package var holder: ComputingProcess? {
        state.withLock { state in
            guard let file = state.file.take() else { return nil }
            // No decision depends on the answer.
            let holder = bestEffort { () throws(Errno) in try ComputingProcess(holding: file) }
            state.file = consume file
            return holder ?? nil
        }
    }
}
