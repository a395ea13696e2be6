// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import Platform

extension SharedCache {
    /// Waits for a lock of this name, which all processes that have this directory open share.
    ///
    /// ```swift
    /// let lock = try cache.lock("nightly report", within: .seconds(10))
    /// defer { lock.unlock() }
    /// ```
    ///
    /// Names of locks have nothing to do with keys: a lock does not keep any process from reading or writing a value.
    /// When its holder dies, at whatever instruction, the kernel frees it; a waiting caller has it within 20 ms
    /// plus the time until its thread gets a processor. It is not recursive: a caller that asks for it a second time
    /// waits for itself, also in another instance of this class. The order of waiting callers is not kept, but a caller
    /// that has held it and asks again leaves it to one that waits already.
    ///
    /// Seven system calls for a lock that is free. While it waits, one for each permit every 10 to 20 ms, and
    /// a file is open for each.
    ///
    /// - Parameters:
    ///   - name: any string but the empty one.
    ///   - permits: how many may hold it at the same time, 1 to 256: more than 1 make it a semaphore. All users of
    ///     the name should give the same number; a caller that gives a smaller one waits until one of that many is
    ///     free.
    ///   - limit: how long to wait; zero: not at all; nil: without end.
    /// - Returns: the lock, which is held until it is given back or goes.
    /// - Throws: ``CacheError`` with the code `busy` if the lock was not free in time, naming a process
    ///   that holds it if that is known; `invalidArgument`; others if the lock's file can't be made: no
    ///   space, no permission, a read-only file system, a closed cache, a cache of the process that this one
    ///   was forked from.
    public func lock(
        _ name: String,
        permits: Int = 1,
        within limit: Duration? = nil
    ) throws(CacheError) -> CacheLock {
        let lock = try namedLock(name, permits: permits)
        var wait = LockWait(within: limit)
        while true {
            switch try attempt(lock, &wait) {
            case .acquired(let permit): return CacheLock(name, permit)
            case .pause(let pause): sleepThread(for: pause)
            case .over: throw notToBeHad(lock, name)
            }
        }
    }

    /// Waits for a lock of this name, without blocking a thread.
    ///
    /// ```swift
    /// try await cache.lock("upload", permits: 3).whileHeld { try await upload() }
    /// ```
    ///
    /// Otherwise like the synchronous form. A task that is cancelled while it waits stops waiting at once.
    ///
    /// - Throws: ``CacheError``, as the synchronous form does, and `CancellationError`.
    public func lock(
        _ name: String,
        permits: Int = 1,
        within limit: Duration? = nil
    ) async throws -> CacheLock {
        let lock = try namedLock(name, permits: permits)
        var wait = LockWait(within: limit)
        while true {
            let step: LockWait.Step
            (step, wait) = try await offload(on: .reading) { [wait] () throws(CacheError) in
                var wait = wait
                return (try self.attempt(lock, &wait), wait)
            }
            switch step {
            case .acquired(let permit): return CacheLock(name, permit)
            case .pause(let pause): try await Task.sleep(for: pause)
            case .over: throw await offload(on: .reading) { self.notToBeHad(lock, name) }
            }
        }
    }

    /// The lock of this name; opens nothing yet.
    package func namedLock(_ name: String, permits: Int) throws(CacheError) -> NamedLock {
        if name.isEmpty {
            throw CacheError(.invalidArgument, "use an empty name: a lock must have one: give one")
        }
        guard (1...StoreLayout.mostPermits).contains(permits) else {
            let reason = "it has 1 to \(StoreLayout.mostPermits)"
            throw CacheError(.invalidArgument, "use \(permits) permits of a lock: \(reason): give so many")
        }
        return try withStore { (store, _) throws(CacheError) in
            NamedLock(Digest(ofKey: name), permits: permits, in: store.directory)
        }
    }

    /// One attempt of a wait.
    package func attempt(_ lock: NamedLock, _ wait: inout LockWait) throws(CacheError) -> LockWait.Step {
        try withStore { (_, _) throws(CacheError) in try wait.attempt(lock) }
    }

    /// The error of who has waited for `lock` in vain, and waits no more: its files are closed.
    package func notToBeHad(_ lock: NamedLock, _ name: String) -> CacheError {
        // Not left to the end of the object, which a thread that has tried for a task may still have for a moment.
        defer { lock.abandon() }
        let reason = lock.holder.map { holder in
            // The lock belongs to an open file, which its processes may have inherited from one that has ended.
            let isThere = ProcFiles.isStopped(holder.processIdentifier) != nil
            return "process \(holder.processIdentifier)" + (isThere ? "" : ", or one that it has started,")
                + " holds it"
        }
        return CacheError(.busy, to: "get the lock \(name) in", path: path, detail: reason)
    }
}
