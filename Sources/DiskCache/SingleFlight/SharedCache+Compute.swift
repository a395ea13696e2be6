// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials

// The synchronous forms block, so asynchronous code must never get them: they are disfavoured, and each has an
// asynchronous twin that takes the same closure. Without the twin, a closure that has a capture list and awaits nothing
// matches the synchronous form best, disfavoured or not.

extension SharedCache {
    /// The value of `key`, computed and stored if it is not there, once for all threads and processes that want
    /// it at the same time.
    ///
    /// If another caller is computing it already, this waits for that one and returns its value. If that fails,
    /// exactly one of the waiting callers computes next, with its own closure; if its process dies, one of them
    /// takes over at once. Failures of the cache itself (no space, no permission, a missing directory, a closed
    /// cache, an invalid expiration) are never thrown here: the value is then computed, still once for the
    /// callers of this process that want it at the same time, and not kept.
    ///
    /// A hit costs no more than `get(forKey:)`. Computing takes about ten system calls besides
    /// the put. The closure must not ask for the same key: it would wait for itself. Don't use this form in
    /// Swift's tasks: while it waits it blocks one of their few threads, and if it waits for a computation that
    /// needs one of these, it may wait forever.
    ///
    /// A computed value is stored even if the key was put or removed meanwhile. If you remove a value because
    /// its source has changed, you may find one that was made from the old source, until it expires.
    ///
    /// It always has a value to return, so it takes `reading.source` as ``ReadOptions/Source/anywhere``, computes at the
    /// wait limit, and computes a key for which another caller has found that there is no value. With `hit(forKey:)` these options apply.
    ///
    /// - Parameters:
    ///   - key: any string but the empty one.
    ///   - options: until when a computed value is valid, and what else to keep.
    ///   - reading: how old a value may be, and how long to wait.
    ///   - compute: makes the value; on this thread or, for a refresh in the background, on another one after
    ///     this call has returned.
    /// - Throws: only the computation's own error.
    @_disfavoredOverload
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions = PutOptions(),
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Data
    ) throws(Failure) -> Data {
        try FlightRequest(self, key, options, reading).value(compute)
    }

    /// The value of `key`, computed and stored if it is not there, once for all tasks, threads and processes
    /// that want it at the same time.
    ///
    /// Like the synchronous form, but blocks no thread while it waits. A task that is cancelled while it waits
    /// for another caller's computation stops waiting at once and runs its own closure, which can see that the
    /// task is cancelled and throw: no other error than the closure's can be thrown here. A task that is
    /// cancelled while it computes gets whatever its closure makes of that; if that is an error, one of the
    /// waiting callers computes next. A value that a cancelled task has computed is stored.
    ///
    /// - Parameters:
    ///   - key: any string but the empty one.
    ///   - options: until when a computed value is valid, and what else to keep.
    ///   - reading: how old a value may be, and how long to wait.
    ///   - compute: makes the value; in this task or, for a refresh in the background, in a task of its own.
    /// - Throws: only the computation's own error.
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions = PutOptions(),
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () async throws(Failure) -> Data
    ) async throws(Failure) -> Data {
        try await FlightRequest(self, key, options, reading).value(compute)
    }

    /// The value of `key`, computed if it is not there by a closure that awaits nothing.
    ///
    /// Otherwise like the asynchronous form with a closure that awaits: it blocks no thread while it waits, and the
    /// closure runs in this task. In asynchronous code the compiler chooses this form, and never the one that blocks.
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions = PutOptions(),
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Data
    ) async throws(Failure) -> Data {
        try await FlightRequest(self, key, options, reading)
            .value { () async throws(Failure) in try compute() }
    }

    // MARK: Deciding what happens to a key

    /// The value of `key`, or the closure's decision about it, once for all threads and processes that want it
    /// at the same time.
    ///
    /// The closure gets the reason for the call and the previous value, and decides on a value and its terms, or that there is
    /// none (``Computed``). All waiting callers get this decision. Failures of the cache itself are never
    /// thrown: a value that can't be stored is returned all the same. A hit costs no more than a get; a miss one system
    /// call more than `value(forKey:)`, to see whether it was noted that there is no value, and four more for a value
    /// that has expired.
    ///
    /// Don't use this form in Swift's tasks, as it blocks the thread.
    ///
    /// - Parameters:
    ///   - key: any string but the empty one.
    ///   - reading: which values are accepted, where to look, and how long to wait.
    ///   - compute: decides; on this thread or, for a refresh in the background, on another one after this call has
    ///     returned. It must not ask for the same key.
    /// - Returns: the value, with its origin (``CacheHit/source``); nil if there is none, or if none was found and
    ///   none was to be computed (``ReadOptions/source``).
    /// - Throws: the closure's errors; ``CacheError/Code/timedOut`` if another caller computes and was not done
    ///   within the limit, with ``ReadOptions/failsAtWaitLimit``: the message names the process.
    @_disfavoredOverload
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Data>) throws -> Computed<Data>
    ) throws -> CacheHit<Data>? {
        try FlightRequest(self, key, reading).hit(compute)
    }

    /// The value of `key`, or the closure's decision about it, once for all tasks, threads and processes that
    /// want it at the same time.
    ///
    /// Like the synchronous form, but blocks no thread while it waits.
    ///
    /// - Parameters:
    ///   - key: any string but the empty one.
    ///   - reading: which values are accepted, where to look, and how long to wait.
    ///   - compute: decides; in this task or, for a refresh in the background, in a task of its own.
    /// - Returns: the value; nil if there is none, or if none was found and none was to be computed.
    /// - Throws: the closure's errors; ``CacheError/Code/timedOut``; `CancellationError`, at once, if the task was
    ///   cancelled while it waited for another caller.
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Data>) async throws -> Computed<Data>
    ) async throws -> CacheHit<Data>? {
        try await FlightRequest(self, key, reading).hit(compute)
    }

    /// What there is for `key`, or what a closure that awaits nothing decides about it.
    ///
    /// Otherwise like the asynchronous form with a closure that awaits.
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Data>) throws -> Computed<Data>
    ) async throws -> CacheHit<Data>? {
        try await FlightRequest(self, key, reading)
            .hit { (computation: Computation<Data>) async throws in try compute(computation) }
    }

    /// The process that is computing the value of `key`, as far as its lock's file says; nil if none is.
    ///
    /// Three system calls.
    func computingProcess(forKey key: String) throws(CacheError) -> ComputingProcess? {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(CacheError) in
            try ComputingProcess.current(of: digest, in: store.directory)
        }
    }
}
