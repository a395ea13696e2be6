// SPDX-License-Identifier: Apache-2.0

/// A lock file that is held, exclusively, until this value goes or the process dies.
///
/// In a child that is forked meanwhile the value is worth nothing: the lock stays its parent's.
///
/// Unlike ``FileLock`` it opens its file anew each time, so that it is alone among all, threads of this
/// process included.
package struct LockFile: ~Copyable, Sendable {
    /// The open file.
    package let descriptor: FileDescriptor
    private let owner = processGeneration

    deinit {
        // Not by closing alone: a child that was forked meanwhile has the file, too.
        if processGeneration == owner { descriptor.unlock() }
    }

    /// Creates the file where it is missing and waits for its lock.
    ///
    /// After locking, the path must still name the file that was locked: if its holder unlinked it in
    /// between, another process may hold a new file of that name, and this one starts again.
    ///
    /// - Returns: nil where it was not to be had within `patience` (zero: one attempt).
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

    /// Gives the lock back and closes the file.
    package consuming func release() {}
}
