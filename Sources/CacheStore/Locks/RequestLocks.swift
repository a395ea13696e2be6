// SPDX-License-Identifier: Apache-2.0

import Platform

/// The locks of callers that request a value from another machine: one for each key, among all processes.
///
/// The locks save requests, and nothing else depends on them: if they can't be acquired, all callers send requests.
/// Creating, locking and deleting a file for each key (``FlightLock``) took half as long as a request in a measurement, so
/// each key has a byte of `locks/requests`, which stays open. If the holder of a byte dies, the kernel unlocks it. The
/// threads of one process hold a lock together, so they must coordinate among themselves first.
package final class RequestLocks: Sendable {
    private final class File: Sendable {
        let descriptor: FileDescriptor

        init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }
    }

    private let directory: StoreDirectory
    private let file = Locked<File?>(nil)

    /// Creates the locks; opens no file yet.
    init(in directory: StoreDirectory) {
        self.directory = directory
    }

    /// A constant, because constructing an option set of another module takes three allocations.
    private static let opening: OpenFlags = [.readWrite, .create]

    /// Tries to acquire the lock of a key; returns false if another process holds it.
    ///
    /// Never waits. One system call; three the first time.
    package func attempt(_ key: Digest) -> Bool {
        let isHeld = bestEffort { () throws(Errno) in try opened().descriptor.tryLock(byte: key.word(0)) }
        return isHeld ?? true
    }

    /// Releases the lock of a key.
    ///
    /// One system call.
    package func release(_ key: Digest) {
        // If this fails, the kernel releases the lock when the file is closed.
        bestEffort { () throws(Errno) in try opened().descriptor.unlock(byte: key.word(0)) }
    }

    private func opened() throws(Errno) -> File {
        try file.withLock { (file) throws(Errno) in
            if let file { return file }
            let name = StoreLayout.requestsLock
            let opened = File(try directory.locks.open(name, Self.opening, mode: FileMode.file))
            file = opened
            return opened
        }
    }
}
