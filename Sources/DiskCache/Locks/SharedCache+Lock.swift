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
    /// Names of locks have nothing to do with keys: a lock keeps nobody from reading or writing any value.
    /// When its holder dies, at whatever instruction, the kernel frees it; whoever waits has it within 20 ms
    /// and the time until its thread gets a processor. It is not recursive: who asks for it a second time
    /// waits for itself, also in another instance of this class. Nobody is served in the order of asking.
    ///
    /// Seven system calls for a lock that is free. While it waits, one for each permit every 10 to 20 ms, and
    /// a file is open for each.
    ///
    /// - Parameters:
    ///   - name: any string but the empty one.
    ///   - permits: how many may hold it at the same time, 1 to 256: more than 1 make it a semaphore. All who
    ///     use the name should give the same number; who gives a smaller one waits until one of that many is
    ///     free.
    ///   - limit: how long to wait; zero: not at all; nil: without end.
    /// - Returns: the lock, which is held until it is given back or goes.
    /// - Throws: ``CacheError`` with the code `busy` where it was not to be had in time, naming a process
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
            if let permit = try attempt(lock) { return CacheLock(name, permit) }
            guard let pause = wait.next() else { throw notToBeHad(lock, name) }
            sleepThread(for: pause)
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
            let permit = try await offload(on: .reading) { () throws(CacheError) in try self.attempt(lock) }
            if let permit { return CacheLock(name, permit) }
            guard let pause = wait.next() else {
                throw await offload(on: .reading) { self.notToBeHad(lock, name) }
            }
            try await Task.sleep(for: pause)
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

    /// A permit if one is free, without waiting; nil if all are held.
    package func attempt(_ lock: NamedLock) throws(CacheError) -> FlightLock? {
        try withStore { (_, _) throws(CacheError) in try lock.attempt() }
    }

    /// The error of who has waited for `lock` in vain, and waits no more: its files are closed.
    package func notToBeHad(_ lock: NamedLock, _ name: String) -> CacheError {
        // Not left to the end of the object, which a thread that has tried for a task may still have for a moment.
        defer { lock.abandon() }
        let reason = lock.holder.map { "process \($0.processIdentifier) holds it" } ?? "it is held"
        return CacheError(.busy, to: "get the lock \(name) in", path: path, detail: reason)
    }
}
