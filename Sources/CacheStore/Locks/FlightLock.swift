// SPDX-License-Identifier: Apache-2.0

import Platform

/// The lock of the one who computes a key's value, alone among all threads and processes; or a permit of a
/// ``NamedLock``.
///
/// It is a flock(2) on `locks/flight-<64 hex>`, named by the key's digest, or on `locks/lock-<64 hex>-<number>`.
/// When its holder dies, at whatever instruction, the kernel gives the lock to the next one who asks; the file that
/// is left is taken over by that one, or deleted by a sweep. Only the holder unlinks the file. When this object goes
/// without ``release(isStored:)``, the lock is free and the file stays.
///
/// Between attempts the file that is waited for stays open, so that this learns of that very flight how it ended. Used
/// by one task at a time, on whatever thread that runs.
package final class FlightLock: Sendable {
    /// What came of an attempt.
    package enum Attempt: Sendable, Hashable {
        /// The lock was free, or its holder had died; it is held until it is released.
        case acquired
        /// Another has it: try again later.
        case held
        /// Its holder has released it: the value may be there now; if not, try again at once.
        ///
        /// Unstored: the value was computed but could not be stored, and the next one will hardly store it either.
        case ended(isUnstored: Bool)
    }

    /// How long to wait at most before the next attempt, so that a value is had within 10 ms of being there.
    ///
    /// An attempt at a lock that is still held is one system call.
    package static let longestPause: Duration = .milliseconds(4)

    private struct State: ~Copyable {
        /// That of the flight that this waits for, or of its own.
        var file: FileDescriptor?
        var isHolding = false
        /// Whether it was noted in the file that this waits for it.
        var isNoted = false
    }

    private let directory: StoreDirectory
    private let path: RelativePath
    private let isPermit: Bool
    private let owner = processGeneration
    private let state = Locked(State())

    /// Opens nothing yet.
    package init(of key: Digest, in directory: StoreDirectory) {
        self.directory = directory
        path = StoreLayout.flightName(key)
        isPermit = false
    }

    /// A permit of the lock with this name; opens nothing yet.
    init(permit number: Int, of name: Digest, in directory: StoreDirectory) {
        self.directory = directory
        path = StoreLayout.permitName(name, number)
        isPermit = true
    }

    /// Tries to get the lock; never waits.
    ///
    /// Seven system calls if nobody holds it (`openat2`, `fstat`, `flock`, `fstat`, `fstatat`, `getpid`, `pwrite`), three
    /// if somebody does, and one (`flock`) while it stays held by the same one.
    ///
    /// - Throws: ``CacheError/Code/noSpace``, ``CacheError/Code/permissionDenied``, ``CacheError/Code/readOnly`` if the
    ///   file can't be made; other errors of open(2) and flock(2).
    package func attempt() throws(CacheError) -> Attempt {
        try attempt(givesWay: false) ?? .held
    }

    /// The same; nil if it is free and another process waits for it.
    ///
    /// - Parameter givesWay: whether it is left to them.
    func attempt(givesWay: Bool) throws(CacheError) -> Attempt? {
        try describing("lock", "\(directory.path)/\(StoreLayout.locks)/\(path)") { () throws(Errno) in
            try state.withLock { (state) throws(Errno) in try attempt(&state, givesWay) }
        }
    }

    /// Notes in the file of a permit that the caller waits for it, so that its holder does not take it again at once.
    ///
    /// One system call, the first time. Where the mode of the file can't be changed, the holder may take it again.
    func noteWait() {
        state.withLock { state in
            guard let file = state.file.take() else { return }
            if !state.isHolding, !exchange(&state.isNoted, with: true) {
                bestEffort { () throws(Errno) in try file.setMode(Self.wantedMode) }
            }
            state.file = consume file
        }
    }

    /// Whether nobody holds what this waits for but a collection, for a moment, to see whether the file may go; or
    /// somebody else who asks this.
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

    /// Made once: putting an option set of another module together takes three allocations.
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
        // Left by one who died after marking it.
        let isWanted = status.permissions & Self.wantedBit != 0
        if isWanted, givesWay {
            file.unlock()
            state.file = consume file
            return nil
        }
        if isMarked || isWanted { try file.setMode(FileMode.file) }
        let holder = ComputingProcess(CurrentProcess.identifier, since: .now)
        // On a full disk the holder remains unknown, which is all that it costs.
        bestEffort { () throws(Errno) in try file.write(holder.line.span) }
        state.file = consume file
        state.isHolding = true
        return .acquired
    }

    /// Gives the lock back if this holds it: removes the file, then unlocks it.
    ///
    /// Otherwise closes the file that this waits for.
    ///
    /// In this order nobody else can hold a file that is about to lose its name. Three system calls, four for a permit,
    /// whose file stays where somebody waits for it. In a child that was forked meanwhile the lock stays its parent's.
    ///
    /// - Parameter isStored: false if the value was computed and could not be stored. That takes one more system call,
    ///   and those who wait need not compute one after another, in the hope that the next one can store it.
    package func release(isStored: Bool = true) {
        // Asked first, as by ``abandon()``. There the file is closed when this object goes.
        guard processGeneration == owner else { return }
        state.withLock { state in
            guard let file = state.file.take(), exchange(&state.isHolding, with: false) else { return }
            // A mode that can't be changed costs them just that.
            if !isStored { bestEffort { () throws(Errno) in try file.setMode(Self.unstoredMode) } }
            // A name that stays names a file that is free, which the next one takes over.
            if !isPermit || !Self.isWanted(file) {
                bestEffort { () throws(Errno) in try directory.locks.unlink(path) }
            }
            // Not by closing alone: a child that was forked meanwhile has the file, too, until it executes something,
            // and those who wait would wait for it.
            file.unlock()
            file.close()
        }
    }

    /// Gives the lock back if this holds it, and leaves the file to whoever takes it next, or to a sweep.
    ///
    /// Otherwise closes the file that this waits for. Nothing that it does waits for the medium. Two system calls.
    /// In a child that was forked meanwhile it does nothing: the lock stays its parent's.
    package func abandon() {
        // Asked first: in a child a thread that is not there may have the mutex.
        guard processGeneration == owner else { return }
        state.withLock { state in
            guard let file = state.file.take() else { return }
            if exchange(&state.isHolding, with: false) { file.unlock() }
            file.close()
        }
    }

    /// Has the lock go on in the program that takes the place of this one, until all who inherit the file have ended.
    ///
    /// One system call.
    package func setInherited() throws(CacheError) {
        _ = try describing("keep the lock", "\(directory.path)/\(StoreLayout.locks)/\(path)") {
            () throws(Errno) in
            try state.withLock { (state) throws(Errno) in try state.file?.setInherited() }
        }
    }

    /// Permission bits that say "not stored".
    ///
    /// A change of mode needs no space, which may be what is missing; and the bit keeps nobody from opening the file,
    /// should its holder die before it is unlinked.
    private static let unstoredMode = FileMode.file | unstoredBit
    private static let unstoredBit: UInt32 = 0o100

    /// Permission bits that say that a process waits for a permit.
    private static let wantedMode = FileMode.file | wantedBit
    private static let wantedBit: UInt32 = 0o010

    private static func isWanted(_ file: borrowing FileDescriptor) -> Bool {
        let permissions = bestEffort { () throws(Errno) in try file.status().permissions }
        return (permissions ?? 0) & wantedBit != 0
    }

    /// Who holds the lock that this waits for, as far as its file and the kernel tell; nil before an attempt.
    ///
    /// Five system calls.
    package var holder: ComputingProcess? {
        state.withLock { state in
            guard let file = state.file.take() else { return nil }
            // Nothing hangs on the answer.
            let holder = bestEffort { () throws(Errno) in try ComputingProcess(holding: file) }
            state.file = consume file
            return holder ?? nil
        }
    }
}
