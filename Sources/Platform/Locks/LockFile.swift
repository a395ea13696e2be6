// SPDX-License-Identifier: Apache-2.0

/// A lock file that is held exclusively until this value is destroyed or the process dies.
///
/// In a child that is forked while the lock is held, the value has no effect: the lock remains the parent's.
///
/// Unlike ``FileLock``, each lock opens its file again, so that it also excludes other threads of this process.
package struct LockFile: ~Copyable, Sendable {
    /// The open file.
    package let descriptor: FileDescriptor
    private let owner = processGeneration

    deinit {
        // Closing the file alone is not enough: a child that was forked in the meantime also has it open.
        if processGeneration == owner { descriptor.unlock() }
    }

    /// Creates the file if it is missing and waits for its lock.
    ///
    /// After locking, the path must still name the locked file. If the previous holder has unlinked the file in the
    /// meantime, another process may hold a new file of that name; then this function starts again.
    ///
    /// - Returns: nil if the lock was not acquired within `patience` (zero: one attempt).
    package static func acquire(
        _ path: RelativePath,
        in directory: borrowing Directory,
        patience: Duration
    ) throws(Errno) -> LockFile? {
        let deadline = ContinuousClock.now + .nanoseconds(patience.saturatingNanoseconds)
        while true {
            let file = try directory.open(path, [.readWrite, .create], mode: 0o600)
            guard try file.tryLock(.exclusive, until: deadline) else { return nil }
            let locked = try file.status().identity
            if try directory.presentStatus(of: path)?.identity == locked { return LockFile(descriptor: file) }
        }
    }

    /// Releases the lock and closes the file.
    package consuming func release() {}
}
