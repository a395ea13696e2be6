// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import Platform

extension KeyedCache {
    /// Acquires the lock with this name, which all processes that use the directory share; waits while it is held.
    ///
    /// ```swift
    /// let lock = try cache.lock("nightly report", within: .seconds(10))
    /// defer { lock.unlock() }
    /// ```
    ///
    /// Names of locks are unrelated to keys: a lock does not keep any process from reading or writing a value. When its
    /// holder dies, at whatever instruction, the kernel releases the lock; a waiting caller acquires it within 20 ms plus
    /// the time until its thread is scheduled. The lock is not recursive: a caller that acquires it a second time waits for
    /// itself, even through another ``SharedCache`` object. The lock is not fair: waiters are not served in order, but a
    /// caller that has held it and requests it again yields to one that is already waiting.
    ///
    /// Acquiring a free lock takes seven system calls. A waiting caller makes one system call per permit every 10 to 20 ms,
    /// and keeps one file open per permit.
    ///
    /// - Parameters:
    ///   - name: any non-empty string; a view puts its prefix before it.
    ///   - permits: how many callers may hold the lock at the same time, 1 to 256; with more than 1 the lock is a
    ///     semaphore. All users of the name should pass the same number; a caller that passes a smaller one competes only
    ///     for that many permits.
    ///   - limit: the maximum time to wait; zero to not wait; nil for no limit.
    /// - Returns: the lock, which is held until it is unlocked or the object is released.
    /// - Throws: ``CacheError`` with the code `busy` if the lock was not free in time, naming a process that holds it if
    ///   known; `invalidArgument`; others if the lock's file cannot be created: no space, no permission, a read-only file
    ///   system, a closed cache, or a cache that was opened before this process was forked.
    public func lock(
        _ name: String,
        permits: Int = 1,
        within limit: Duration? = nil
    ) throws(CacheError) -> CacheLock {
        let (cache, name) = (cache, whole(name))
        let lock = try cache.namedLock(name, permits: permits)
        var wait = LockWait(within: limit)
        while true {
            switch try cache.attempt(lock, &wait) {
            case .acquired(let permit): return CacheLock(name, permit)
            case .pause(let pause): sleepThread(for: pause)
            case .over: throw cache.notToBeHad(lock, name)
            }
        }
    }

    /// Acquires the lock with this name; waits while it is held, without blocking a thread.
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
        let (cache, name) = (cache, whole(name))
        let lock = try cache.namedLock(name, permits: permits)
        var wait = LockWait(within: limit)
        while true {
            let step: LockWait.Step
            (step, wait) = try await offload(on: .reading) { [wait] () throws(CacheError) in
                var wait = wait
                return (try cache.attempt(lock, &wait), wait)
            }
            switch step {
            case .acquired(let permit): return CacheLock(name, permit)
            case .pause(let pause): try await Task.sleep(for: pause)
            case .over: throw await offload(on: .reading) { cache.notToBeHad(lock, name) }
            }
        }
    }
}

// MARK: Steps

extension SharedCache {
    /// Returns the lock with this name, without opening any file yet.
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

    /// Makes one attempt of a wait.
    package func attempt(_ lock: NamedLock, _ wait: inout LockWait) throws(CacheError) -> LockWait.Step {
        try withStore { (_, _) throws(CacheError) in try wait.attempt(lock) }
    }

    /// Ends an unsuccessful wait for `lock`: closes its files, and returns the error.
    package func notToBeHad(_ lock: NamedLock, _ name: String) -> CacheError {
        // Not left to the object's `deinit`: a thread that has made an attempt for a task may still hold a reference for a
        // moment.
        defer { lock.abandon() }
        let reason = lock.holder.map { holder in
            // The lock belongs to an open file description. If the named process has ended, a child that inherited the
            // description may still hold the lock.
            let isThere = ProcFiles.isStopped(holder.processIdentifier) != nil
            return "process \(holder.processIdentifier)" + (isThere ? "" : ", or one that it has started,")
                + " holds it"
        }
        return CacheError(.busy, to: "get the lock \(name) in", path: path, detail: reason)
    }
}
