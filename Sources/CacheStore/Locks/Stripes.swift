// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// The stripe locks of one kind, `object-00…3f` or `entry-00…3f`, each for the digests that share their leading bits.
///
/// Lock order: object before entry; no thread ever holds two stripes of one kind. The lock files are created with the cache
/// and never unlinked: if a lock file were replaced, its stripe could have two holders.
package final class Stripes: Sendable {
    /// How long a writer waits for a stripe.
    ///
    /// A holder keeps a stripe for microseconds; in a durable store, for as long as the medium takes. Only a stopped holder
    /// (SIGSTOP, a debugger, a frozen cgroup) causes a longer wait, and then an error is better than a hang. If the holder
    /// lacks a processor or waits for a disk, the wait is ``mostWaits`` times as long.
    static let writerPatience: Duration = .milliseconds(700)

    /// For how many milliseconds a stripe counts as held by a stopped process after a wait for it has failed.
    static let stuckMilliseconds: UInt64 = 5000
    /// How long to wait for a stripe during that time: enough for many holders one after the other.
    static let stuckPatience: Duration = .milliseconds(10)
    /// The shortest wait that shows that the holder is stopped.
    private static let tellingWait: Duration = .milliseconds(100)
    /// How many times its patience a caller waits for a holder that is not stopped, but lacks a processor or waits for a
    /// disk.
    ///
    /// On a machine with ten times as many runnable threads as processors a thread may wait for seconds to be scheduled.
    private static let mostWaits = 10

    private struct Stripe: ~Copyable {
        /// Opened at its first use, and never replaced.
        let lock = AtomicLazyReference<FileLock>()
        /// Until when the stripe counts as stuck, for the shared and for the exclusive mode, in milliseconds of
        /// CLOCK_MONOTONIC.
        let stuckUntil = InlineArray<2, Atomic<UInt64>> { _ in Atomic(0) }
    }

    private let tree: Tree
    private let owner = processGeneration
    private let control: Control
    private let stripes = StoreLayout.PerStripe<Stripe> { _ in Stripe() }

    init(of tree: Tree, in control: Control) {
        self.tree = tree
        self.control = control
    }

    /// Acquires a stripe (``Digest/stripe``), which is held as long as the result exists.
    ///
    /// Two `flock` calls, including the release; fewer if other threads share the stripe.
    ///
    /// - Throws: ``CacheError/Code/busy`` if it was not free within `patience`; ``CacheError/Code/forked`` in a child of the
    ///   process that has opened it.
    func lock(
        _ mode: LockMode,
        stripe: Int,
        patience: Duration = Stripes.writerPatience
    ) throws(CacheError) -> StripeLock {
        guard processGeneration == owner else {
            throw CacheError(.forked, to: "lock", path: path(of: stripe))
        }
        let lock = if let open = stripes[stripe].lock.load() { open } else { try open(stripe) }
        try take(lock, mode, stripe, patience)
        return StripeLock(lock: lock, mode: mode)
    }

    /// Acquires each stripe exclusively once and releases it: by the end, all holders at the start have released theirs.
    ///
    /// `patience` is called before each stripe, with the number of stripes that were not free so far. If it returns nil, the
    /// barrier is aborted, and the result is nil. `held` is called while a stripe is held.
    ///
    /// - Returns: the stripes that were not free in time.
    func barrier(
        patience: (Int) -> Duration?,
        held: (Int) -> Void = { _ in }
    ) throws(CacheError) -> Set<Int>? {
        var skipped: Set<Int> = []
        for stripe in 0..<StoreLayout.stripeCount {
            guard let patience = patience(skipped.count) else { return nil }
            do throws(CacheError) {
                let lock = try lock(.exclusive, stripe: stripe, patience: patience)
                held(stripe)
                lock.release()
            } catch {
                guard error.code == .busy else { throw error }
                skipped.insert(stripe)
            }
        }
        return skipped
    }

    private func take(
        _ lock: FileLock,
        _ mode: LockMode,
        _ stripe: Int,
        _ patience: Duration
    ) throws(CacheError) {
        let mark = mode == .shared ? 0 : 1
        let until = stripes[stripe].stuckUntil[mark].load(ordering: .relaxed)
        let isStuck = until != 0 && Timestamp.monotonicMilliseconds < until
        var waits = 0
        while true {
            do throws(Errno) {
                try lock.lock(mode, patience: isStuck ? min(patience, Self.stuckPatience) : patience)
                if until != 0 { stripes[stripe].stuckUntil[mark].store(0, ordering: .relaxed) }
                return
            } catch {
                if error == .timedOut, !isStuck, patience >= Self.tellingWait {
                    waits += 1
                    if waits < Self.mostWaits, hasBusyHolder(stripe) { continue }
                    let end = Timestamp.monotonicMilliseconds + Self.stuckMilliseconds
                    stripes[stripe].stuckUntil[mark].store(end, ordering: .relaxed)
                }
                throw CacheError(errno: error, "lock", path: path(of: stripe))
            }
        }
    }

    private func hasBusyHolder(_ stripe: Int) -> Bool {
        let name = StoreLayout.lockName(tree, stripe)
        return control.directory.holders(ofLock: name).contains { ProcFiles.isBusy($0) }
    }

    /// Opens the stripe's file, unless another thread was first: two descriptors of one process would exclude each other.
    private func open(_ stripe: Int) throws(CacheError) -> FileLock {
        let file = try describing("open a lock file", self.path(of: stripe)) { () throws(Errno) in
            let name = StoreLayout.lockName(tree, stripe)
            return try control.directory.locks.open(name, [.readWrite, .create], mode: FileMode.file)
        }
        let lock = FileLock(owning: file) { [control, tree] in control.wantedWord(tree, stripe) }
        return stripes[stripe].lock.storeIfNil(lock)
    }

    private func path(of stripe: Int) -> String {
        "\(control.directory.path)/\(StoreLayout.locks)/\(StoreLayout.lockName(tree, stripe))"
    }
}

/// A held stripe, which is released when this value is destroyed.
///
/// Functions that need the stripe take it as an argument.
struct StripeLock: ~Copyable {
    fileprivate let lock: FileLock
    fileprivate let mode: LockMode

    /// Whether no other caller holds the stripe.
    var isExclusive: Bool { mode == .exclusive }

    deinit { lock.unlock(mode) }

    /// Releases the stripe now.
    consuming func release() {}
}

extension StoreDirectory {
    /// Returns the processes that hold the lock of that name, as seen by this process; empty if unknown.
    func holders(ofLock name: RelativePath) -> [Int32] {
        let status = bestEffort { () throws(Errno) in try locks.status(of: name) }
        return status.map { ProcFiles.lockHolders(inode: $0.identity.inode) } ?? []
    }
}
