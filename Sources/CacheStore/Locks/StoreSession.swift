// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// The presence of an open cache in its directory, until it ends or its process dies.
///
/// A session is a shared lock on `locks/sessions` with a separate descriptor: two sessions of one process count as two.
package final class StoreSession: Sendable {
    private let file: FileDescriptor
    private let hasEnded = Atomic<Bool>(false)
    private let owner = processGeneration

    /// How long to wait for a process that checks whether its session is the last one, which takes two system calls.
    private static let patience: Duration = .seconds(1)

    private init(_ file: consuming FileDescriptor) {
        self.file = file
    }

    deinit {
        // Closing is not enough: a child that was forked meanwhile has the file open too.
        if processGeneration == owner, !hasEnded.load(ordering: .relaxed) { file.unlock() }
    }

    /// Starts a session; returns nil if this process may not write to the directory, or if another process keeps the lock.
    ///
    /// The latter happens if a process is stopped in the middle of ``end()``; the cache works without a session.
    ///
    /// Two system calls.
    package static func begin(in directory: StoreDirectory) throws(CacheError) -> StoreSession? {
        guard directory.isWritable else { return nil }
        let name = StoreLayout.sessionsLock
        return try describing("lock", "\(directory.path)/\(StoreLayout.locks)/\(name)") {
            () throws(Errno) -> StoreSession? in
            let file = try directory.locks.open(name, [.readWrite, .create], mode: FileMode.file)
            guard try file.tryLock(.shared, until: .now + patience) else { return nil }
            return StoreSession(file)
        }
    }

    /// Ends the session; returns true for the last session, whose caller must then clean up.
    ///
    /// Returns false on the second call, and in a child that was forked meanwhile: there the session is the parent's.
    ///
    /// The session releases its shared lock first, then tries the exclusive one. So of any number of sessions that end at
    /// the same time, at least one is reported as the last: the session that releases its shared lock last tries the
    /// exclusive one when none of the others has a shared lock. Its attempt fails only if a new session has started, which
    /// will end later, or if another ending session holds the exclusive lock at that moment. (If sessions tried first and
    /// released afterwards, two of them would exclude each other.) Two sessions that are reported as the last do no harm:
    /// their sweeps exclude each other.
    ///
    /// The exclusive lock is released at once and not kept during the cleanup, so that a new session need not wait for it.
    /// Two system calls; three for the last session.
    package func end() throws(CacheError) -> Bool {
        guard processGeneration == owner else { return false }
        if hasEnded.exchange(true, ordering: .acquiringAndReleasing) { return false }
        file.unlock()
        let isLast = try describing("lock", "\(StoreLayout.locks)/\(StoreLayout.sessionsLock)") {
            () throws(Errno) in
            try file.tryLock(.exclusive)
        }
        if isLast { file.unlock() }
        return isLast
    }
}
