// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// The presence of one open cache in its directory, until it ends or its process dies.
///
/// A lock on `locks/sessions`, held shared on a descriptor of its own: two sessions of one process count as
/// two.
package final class StoreSession: Sendable {
    private let file: FileDescriptor
    private let hasEnded = Atomic<Bool>(false)
    private let owner = processGeneration

    /// How long to wait for a process that checks whether it is the last one, which takes two system calls.
    private static let patience: Duration = .seconds(1)

    private init(_ file: consuming FileDescriptor) {
        self.file = file
    }

    deinit {
        // Not by closing alone: a child that was forked meanwhile has the file, too.
        if processGeneration == owner, !hasEnded.load(ordering: .relaxed) { file.unlock() }
    }

    /// Joins those who have the directory open; nil where this process may not write there, or where
    /// somebody keeps the lock to himself (stopped in the very moment): the cache works without.
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

    /// Leaves; true for the last one out, who then has to clean up.
    ///
    /// False at the second call, and in a child that was forked meanwhile: there it is the parent's.
    ///
    /// First the own share goes, then everything is asked for. So of any number that leave at the same
    /// time at least one is told that it is the last: the one whose share went last asks when no share of
    /// theirs is left, and is refused only because somebody else has joined, who will leave later, or because
    /// another one of them was given everything just then. (Asking first and giving up afterwards, two would
    /// refuse each other.) That two are told so does no harm: the sweeps themselves exclude each other.
    ///
    /// The lock is given back at once and not kept for the cleaning, so that a newcomer need not wait for it.
    /// Two system calls, three for the last one.
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
