// SPDX-License-Identifier: Apache-2.0

import Platform

/// The locks of those who ask another machine for a value, one among all processes for each key.
///
/// They save requests, and nothing else depends on them: where they can't be had, everybody asks. To make, lock and
/// delete a file for each (``FlightLock``) took half as long as a request on this machine; so each key has a byte of
/// `locks/requests`, which stays open. When its holder dies the kernel gives a byte back. Threads of one process
/// hold it together, and have to agree among themselves before.
package final class RequestLocks: Sendable {
    private final class File: Sendable {
        let descriptor: FileDescriptor

        init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }
    }

    private let directory: StoreDirectory
    private let file = Locked<File?>(nil)

    /// Opens nothing yet.
    init(in directory: StoreDirectory) {
        self.directory = directory
    }

    /// Made once: putting an option set of another module together takes three allocations.
    private static let opening: OpenFlags = [.readWrite, .create]

    /// Tries to get the lock of a key; false where another process has it.
    ///
    /// Never waits. One system call, the first time three.
    package func attempt(_ key: Digest) -> Bool {
        let isHeld = bestEffort { () throws(Errno) in try opened().descriptor.tryLock(byte: key.word(0)) }
        return isHeld ?? true
    }

    /// Gives it back.
    ///
    /// One system call.
    package func release(_ key: Digest) {
        // The kernel gives back what can't be, with the file.
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
