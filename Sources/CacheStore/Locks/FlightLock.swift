// SPDX-License-Identifier: Apache-2.0

import Platform

/// The lock of the one who computes a key's value: alone among all threads and processes.
///
/// It is a flock(2) on `locks/flight-<64 hex>`, named by the key's digest. When its holder dies, at
/// whatever instruction, the kernel gives the lock to the next process that asks; the file that is left then is taken over
/// by that one, or deleted by a sweep. Only who holds the lock unlinks the file. When this value goes
/// without ``release()`` the lock is free and the file stays.
package struct FlightLock: ~Copyable, Sendable {
    private let file: FileDescriptor
    private let directory: StoreDirectory
    private let path: RelativePath
    private let owner = processGeneration

    /// What is needed once the file is locked and known to be the one that the path names.
    fileprivate init(
        holding file: consuming FileDescriptor,
        _ path: RelativePath,
        in directory: StoreDirectory
    ) {
        self.file = file
        self.path = path
        self.directory = directory
    }

    /// Gives the lock back: removes the file, then unlocks it.
    ///
    /// In this order no other can hold a file that is about to lose its name. Three system calls. In a child that was
    /// forked meanwhile the lock stays its parent's.
    package consuming func release() {
        guard processGeneration == owner else { return }
        // A name that stays names a file that is free, which the next one takes over.
        bestEffort { () throws(Errno) in try directory.locks.unlink(path) }
        // Not by closing alone: a child that was forked meanwhile has the file, too, until it executes
        // something, and those who wait would wait for it.
        file.unlock()
        file.close()
    }

    /// Gives the lock back and tells those who wait for it that the value was computed but not stored.
    ///
    /// They need not compute one after another then, in the hope that the next one can store it. Four
    /// system calls.
    package consuming func releaseUnstored() {
        // A mode that can't be changed costs them just that.
        if processGeneration == owner {
            bestEffort { () throws(Errno) in try file.setMode(Self.unstoredMode) }
        }
        release()
    }

    /// Permission bits that say "not stored".
    ///
    /// A change of mode needs no space, which may be what is missing; and the bit keeps nobody from opening the
    /// file, should its holder die before it is unlinked.
    fileprivate static let unstoredMode = FileMode.file | 0o100
    fileprivate static let unstoredBit: UInt32 = 0o100

    /// Says in the file who holds it.
    ///
    /// On a full disk the holder remains unknown, which is all that it costs.
    fileprivate borrowing func sign() {
        let holder = FlightHolder(process: CurrentProcess.identifier, since: .now)
        bestEffort { () throws(Errno) in try file.write(holder.line.span) }
    }
}

/// Somebody who waits for the lock of a key, between attempts: it keeps the file open that it waits for.
///
/// So it learns of that very flight how it ended.
package struct FlightWait: ~Copyable, Sendable {
    /// How an attempt ended.
    package enum Outcome: ~Copyable {
        /// The lock was free, or its holder has died.
        case acquired(FlightLock)
        /// It is still held: try again later.
        case held
        /// Its holder has given it back: the value may be there now; if not, try again at once.
        ///
        /// Where the value was computed but could not be stored, the next one will hardly store it either.
        case ended(isUnstored: Bool)
    }

    private let directory: StoreDirectory
    private let path: RelativePath
    private var file: FileDescriptor?

    /// Opens nothing yet.
    package init(for key: Digest, in directory: StoreDirectory) {
        self.directory = directory
        path = StoreLayout.flightName(key)
        file = nil
    }

    /// Tries to get the lock; never waits.
    ///
    /// Seven system calls where nobody holds it (`openat2`, `fstat`, `flock`, `fstat`, `fstatat`, `getpid`, `pwrite`), three
    /// where somebody does, and one (`flock`) while it stays held by the same one.
    ///
    /// - Throws: ``StoreError/Code/noSpace``, ``StoreError/Code/permissionDenied``,
    ///   ``StoreError/Code/readOnly`` where the file can't be made; other errors of open(2) and flock(2).
    package mutating func attempt() throws(StoreError) -> Outcome {
        do throws(Errno) {
            return try attemptOnce()
        } catch {
            let place = "\(directory.path)/\(StoreLayout.locks)/\(path)"
            throw StoreError(errno: error, "lock", path: place)
        }
    }

    /// Made once: putting an option set of another module together takes three allocations.
    private static let opening: OpenFlags = [.readWrite, .create]

    private mutating func attemptOnce() throws(Errno) -> Outcome {
        let file: FileDescriptor
        if let open = self.file.take() {
            file = open
        } else {
            file = try directory.locks.open(path, Self.opening, mode: FileMode.file)
        }
        guard try file.tryLock(.exclusive) else {
            self.file = consume file
            return .held
        }
        let status = try file.status()
        let isMarked = status.permissions & FlightLock.unstoredBit != 0
        let named = try ifExists { () throws(Errno) in
            try directory.locks.status(of: path).identity
        }
        guard named == status.identity else { return .ended(isUnstored: isMarked) }
        // Left by one who died after he had marked it.
        if isMarked { try file.setMode(FileMode.file) }
        let lock = FlightLock(holding: file, path, in: directory)
        lock.sign()
        return .acquired(lock)
    }

    /// Who holds what this waits for, as far as its file tells; nil before an attempt.
    ///
    /// One system call.
    package var holder: FlightHolder? {
        var line: [UInt8]?
        // Nothing hangs on the answer.
        bestEffort { () throws(Errno) in line = try file?.read(FlightHolder.lineLength) }
        return line.flatMap { FlightHolder(line: $0) }
    }
}
