// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials

// The synchronous forms block, so asynchronous code must never get them: they are disfavoured, and of each there is an
// asynchronous one that takes the same closure. Without that a closure with a capture list that awaits nothing suits
// the synchronous one best, disfavoured or not.

extension SharedCache {
    /// The value of `key`, computed and stored if it is not there, once across all threads and
    /// processes that want it at the same time.
    ///
    /// If another caller computes it already, this waits for that one and takes its value. If that fails,
    /// exactly one of those who wait computes in turn, with its own closure; if its process dies, one of them
    /// takes over at once. Failures of the cache itself (no space, no permission, a directory that is gone,
    /// a closed cache, an expiration that makes no sense) never show here: the value is computed then, still
    /// once for those of this process who want it at the same time, and not kept.
    ///
    /// A hit costs what `get(forKey:allowingStale:)` does and nothing more. Computing costs some
    /// ten system calls besides the put. The closure must not ask for the same key: it would wait for itself.
    /// Nor is this form for Swift's tasks: while it waits, it blocks one of their few threads, and if it waits
    /// for a computation that needs one of these, it may wait forever.
    ///
    /// A computed value is stored even if somebody has put or removed the key meanwhile: after removing a value
    /// because what it was made from has changed, you may find one that was made before, until it expires.
    ///
    /// - Parameters:
    ///   - key: any string but an empty one.
    ///   - options: until when a computed value is good, and what else to keep.
    ///   - computing: whether old values will do, and how long to wait.
    ///   - compute: makes the value; on this thread, or, for a refresh in the background, on another one after
    ///     this call has returned.
    /// - Throws: the computation's own error and no other.
    @_disfavoredOverload
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions = PutOptions(),
        computing: ComputeOptions = ComputeOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Data
    ) throws(Failure) -> Data {
        try FlightRequest(self, key, options, computing).value(compute)
    }

    /// The value of `key`, computed and stored if it is not there, once across all tasks, threads and
    /// processes that want it at the same time.
    ///
    /// As the synchronous form; no thread is blocked while this waits. A task that is cancelled while it waits
    /// for somebody else's computation stops waiting at once and runs its own closure, which sees that the task
    /// is cancelled and can throw what it likes: only its error can be thrown here. One that is cancelled while
    /// it computes gets what its closure makes of that; if that is an error, one of those who wait computes in
    /// turn. What a cancelled task has computed all the same is stored.
    ///
    /// - Parameters:
    ///   - key: any string but an empty one.
    ///   - options: until when a computed value is good, and what else to keep.
    ///   - computing: whether old values will do, and how long to wait.
    ///   - compute: makes the value; in this task, or, for a refresh in the background, in one of its own.
    /// - Throws: the computation's own error and no other.
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions = PutOptions(),
        computing: ComputeOptions = ComputeOptions(),
        orCompute compute: @escaping @Sendable () async throws(Failure) -> Data
    ) async throws(Failure) -> Data {
        try await FlightRequest(self, key, options, computing).value(compute)
    }

    /// The value of `key`, computed if it is not there, or an error if somebody else computes it and
    /// is not done within `limit`.
    ///
    /// Otherwise as the form without a limit. `computing.waitLimit` has no meaning here.
    ///
    /// - Parameters:
    ///   - key: any string but an empty one.
    ///   - limit: how long to wait for somebody else's computation; zero: not at all. How long this caller's
    ///     own takes is not limited.
    ///   - options: until when a computed value is good, and what else to keep.
    ///   - computing: whether old values will do.
    ///   - compute: makes the value.
    /// - Throws: ``WaitError/timedOut(_:)``, or ``WaitError/computation(_:)`` with the computation's error.
    @_disfavoredOverload
    public func value<Failure: Error>(
        forKey key: String,
        within limit: Duration,
        options: PutOptions = PutOptions(),
        computing: ComputeOptions = ComputeOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Data
    ) throws(WaitError<Failure>) -> Data {
        try FlightRequest(self, key, options, computing, within: limit).end(compute).get()
    }

    /// The value of `key`, computed if it is not there, or an error if somebody else computes it and
    /// is not done within `limit`, or the task is cancelled while it waits for that.
    ///
    /// Otherwise as the form without a limit. `computing.waitLimit` has no meaning here.
    ///
    /// - Parameters:
    ///   - key: any string but an empty one.
    ///   - limit: how long to wait for somebody else's computation; zero: not at all. How long this caller's
    ///     own takes is not limited.
    ///   - options: until when a computed value is good, and what else to keep.
    ///   - computing: whether old values will do.
    ///   - compute: makes the value.
    /// - Throws: ``WaitError/timedOut(_:)``; ``WaitError/cancelled``, at once, if the task was cancelled
    ///   while it waited; ``WaitError/computation(_:)`` with the computation's error.
    public func value<Failure: Error>(
        forKey key: String,
        within limit: Duration,
        options: PutOptions = PutOptions(),
        computing: ComputeOptions = ComputeOptions(),
        orCompute compute: @escaping @Sendable () async throws(Failure) -> Data
    ) async throws(WaitError<Failure>) -> Data {
        try await FlightRequest(self, key, options, computing, within: limit).end(compute)
            .get()
    }

    /// The value of `key`, computed if it is not there by a closure that awaits nothing.
    ///
    /// Otherwise as the asynchronous form with one that awaits: no thread is blocked while this waits, and the closure
    /// runs in this task. In asynchronous code the compiler takes this form, and never the one that blocks.
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions = PutOptions(),
        computing: ComputeOptions = ComputeOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Data
    ) async throws(Failure) -> Data {
        try await FlightRequest(self, key, options, computing)
            .value { () async throws(Failure) in try compute() }
    }

    /// The value of `key`, computed by a closure that awaits nothing, or an error if somebody else computes it
    /// and is not done within `limit`, or the task is cancelled while it waits for that.
    ///
    /// Otherwise as the asynchronous form with one that awaits.
    public func value<Failure: Error>(
        forKey key: String,
        within limit: Duration,
        options: PutOptions = PutOptions(),
        computing: ComputeOptions = ComputeOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Data
    ) async throws(WaitError<Failure>) -> Data {
        try await FlightRequest(self, key, options, computing, within: limit)
            .end { () async throws(Failure) in try compute() }.get()
    }

    /// Who computes the value of `key` now, as far as its lock's file tells; nil if nobody does. Three system calls.
    func computingProcess(forKey key: String) throws(CacheError) -> ComputingProcess? {
        let digest = try digest(ofKey: key)
        return try withStore { (store, _) throws(StoreError) in
            try FlightHolder.current(of: digest, in: store.directory).map { ComputingProcess($0) }
        }
    }
}
