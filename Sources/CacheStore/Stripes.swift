// SPDX-License-Identifier: Apache-2.0

import Platform
import Synchronization

/// The 64 locks of one kind, `object-00…3f` or `entry-00…3f`, each for the digests that share 6 leading bits.
///
/// Order between the kinds: object before entry; two stripes of one kind are never held together. Their
/// files are created with the cache and never unlinked: a lock file that is replaced has two holders.
package final class Stripes: Sendable {
    /// What a stripe guards, and the beginning of its file's name.
    package enum Kind: String, CaseIterable, Sendable {
        case object, entry
    }

    /// How long a writer waits for a stripe.
    ///
    /// Holders keep them for microseconds, in a durable store as long as the medium takes; only one that is stopped
    /// (SIGSTOP, a debugger, a frozen group) makes anybody wait so long, and then an error is better than a hang. One
    /// that lacks a processor is waited for longer, ``mostWaits`` times that.
    static let writerPatience: Duration = .milliseconds(700)

    /// For so many milliseconds a stripe counts as held by one that is stopped, once somebody has waited for it in vain.
    static let stuckMilliseconds: UInt64 = 5000
    /// How long to wait for a stripe meanwhile: as long as many holders take one after the other.
    static let stuckPatience: Duration = .milliseconds(10)
    /// Who has waited less tells nothing of the holder.
    private static let tellingWait: Duration = .milliseconds(100)
    /// How many times its patience somebody waits for a holder that is not stopped but only lacks a processor.
    ///
    /// On a machine with ten times as many threads to run as processors one may wait for seconds for its turn.
    private static let mostWaits = 10

    private let kind: Kind
    private let owner = processGeneration
    private let directory: StoreDirectory
    private let control: Control
    /// One for each of ``StoreLayout/stripeCount``, opened when it is first wanted, and never another one from then on.
    private let locks = InlineArray<64, FileLockPlace> { _ in FileLockPlace() }

    /// Until when each counts as not to be had, in milliseconds of CLOCK_MONOTONIC; of 64 for each mode, shared first.
    private let stuckUntil = InlineArray<128, Atomic<UInt64>> { _ in Atomic(0) }

    init(_ kind: Kind, in control: Control) {
        self.kind = kind
        self.control = control
        directory = control.directory
    }

    /// Runs `body` while the stripe of `digest` is held.
    ///
    /// Two `flock` calls, fewer beside other sharers.
    ///
    /// - Throws: ``StoreError/Code/busy`` when it was not to be had within `patience`; ``StoreError/Code/forked`` in a
    ///   child of the process that has opened it.
    func withLock<Value: ~Copyable>(
        _ mode: LockMode,
        of digest: Digest,
        patience: Duration = Stripes.writerPatience,
        _ body: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        try withLock(mode, stripe: digest.stripe, patience: patience, body)
    }

    /// The same for a stripe by its number.
    func withLock<Value: ~Copyable>(
        _ mode: LockMode,
        stripe: Int,
        patience: Duration,
        _ body: () throws(StoreError) -> Value
    ) throws(StoreError) -> Value {
        guard processGeneration == owner else {
            throw StoreError(.forked, "lock", path: path(of: stripe))
        }
        while try !take(mode, stripe, patience) { try open(stripe) }
        defer { locks[stripe].unlock(mode) }
        return try body()
    }

    /// Takes each stripe exclusively once and lets it go: whoever held one when this began has let it go when
    /// this returns.
    ///
    /// The stripes that were not to be had within `patience`, asked for each with how many those are so far, are
    /// returned; nil where it called the whole off.
    func barrier(patience: (Int) -> Duration?) throws(StoreError) -> Set<Int>? {
        var skipped: Set<Int> = []
        for stripe in 0..<StoreLayout.stripeCount {
            guard let patience = patience(skipped.count) else { return nil }
            do throws(StoreError) {
                try withLock(.exclusive, stripe: stripe, patience: patience) {}
            } catch {
                guard error.code == .busy else { throw error }
                skipped.insert(stripe)
            }
        }
        return skipped
    }

    /// False where the stripe's file was not opened yet.
    private func take(_ mode: LockMode, _ stripe: Int, _ patience: Duration) throws(StoreError) -> Bool {
        let place = stripe + (mode == .shared ? 0 : StoreLayout.stripeCount)
        let until = stuckUntil[place].load(ordering: .relaxed)
        let isStuck = until != 0 && Timestamp.monotonicMilliseconds < until
        var waits = 0
        return try describing("lock", self.path(of: stripe)) { () throws(Errno) in
            while true {
                do throws(Errno) {
                    let isOpen = try locks[stripe].lock(
                        mode,
                        patience: isStuck ? min(patience, Self.stuckPatience) : patience
                    )
                    if until != 0, isOpen { stuckUntil[place].store(0, ordering: .relaxed) }
                    return isOpen
                } catch {
                    guard error == .timedOut, !isStuck, patience >= Self.tellingWait else { throw error }
                    waits += 1
                    if waits < Self.mostWaits, hasRunnableHolder(stripe) { continue }
                    let end = Timestamp.monotonicMilliseconds + Self.stuckMilliseconds
                    stuckUntil[place].store(end, ordering: .relaxed)
                    throw error
                }
            }
        }
    }

    private func hasRunnableHolder(_ stripe: Int) -> Bool {
        var holders: [Int32] = []
        bestEffort { () throws(Errno) in
            let status = try directory.locks.status(of: StoreLayout.lockName(kind, stripe))
            holders = ProcFiles.lockHolders(inode: status.identity.inode)
        }
        return holders.contains { ProcFiles.isRunnable($0) }
    }

    /// Opens the stripe's file, unless another thread is first: two of one process would exclude each other.
    private func open(_ stripe: Int) throws(StoreError) {
        let file = try describing("open a lock file", self.path(of: stripe)) { () throws(Errno) in
            try directory.locks.open(
                StoreLayout.lockName(kind, stripe),
                [.readWrite, .create],
                mode: FileMode.file
            )
        }
        locks[stripe].settle(
            FileLock(owning: file) { [control, kind] in control.wantedWord(kind, stripe) }
        )
    }

    private func path(of stripe: Int) -> String {
        "\(directory.path)/\(StoreLayout.locks)/\(StoreLayout.lockName(kind, stripe))"
    }
}
