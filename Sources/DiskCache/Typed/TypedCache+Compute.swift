// SPDX-License-Identifier: Apache-2.0

import CacheStore

// The synchronous forms block, so asynchronous code must never get them: they are disfavoured, and of each there is an
// asynchronous one that takes the same closure. Without that a closure with a capture list that awaits nothing suits
// the synchronous one best, disfavoured or not.

extension TypedCache {
    /// The value of `key`, computed and stored if it is not there, once across all threads and
    /// processes that want it at the same time.
    ///
    /// As `value(forKey:orCompute:)` of ``SharedCache`` for bytes. A value that is stored and does not decode is
    /// computed and replaced; one that can't be encoded is given out and not kept.
    ///
    /// - Parameters:
    ///   - key: any string but an empty one.
    ///   - options: until when a computed value is good, and what else to keep.
    ///   - computing: whether old values will do, and how long to wait.
    ///   - compute: makes the value; on this thread, or, for a refresh in the background, on another one
    ///     when this call has returned.
    /// - Throws: the computation's own error and no other.
    @_disfavoredOverload
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions = PutOptions(),
        computing: ComputeOptions = ComputeOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try FlightRequest(self, key, options, computing).value(compute)
    }

    /// The value of `key`, computed and stored if it is not there, once across all tasks, threads and
    /// processes that want it at the same time.
    ///
    /// As the form for bytes; no thread is blocked while this waits.
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
        orCompute compute: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await FlightRequest(self, key, options, computing).value(compute)
    }

    /// The value of `key`, computed if it is not there, or an error if somebody else computes it and
    /// is not done within `limit`.
    ///
    /// - Parameters:
    ///   - key: any string but an empty one.
    ///   - limit: how long to wait for somebody else's computation; zero: not at all.
    ///   - options: until when a computed value is good, and what else to keep.
    ///   - computing: whether old values will do; its `waitLimit` has no meaning here.
    ///   - compute: makes the value.
    /// - Throws: ``WaitError/timedOut(_:)``, or ``WaitError/computation(_:)`` with the computation's error.
    @_disfavoredOverload
    public func value<Failure: Error>(
        forKey key: String,
        within limit: Duration,
        options: PutOptions = PutOptions(),
        computing: ComputeOptions = ComputeOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) throws(WaitError<Failure>) -> Value {
        try FlightRequest(self, key, options, computing, within: limit).end(compute).get()
    }

    /// The value of `key`, computed if it is not there, or an error if somebody else computes it and
    /// is not done within `limit`, or the task is cancelled while it waits for that.
    ///
    /// - Parameters:
    ///   - key: any string but an empty one.
    ///   - limit: how long to wait for somebody else's computation; zero: not at all.
    ///   - options: until when a computed value is good, and what else to keep.
    ///   - computing: whether old values will do; its `waitLimit` has no meaning here.
    ///   - compute: makes the value.
    /// - Throws: ``WaitError/timedOut(_:)``; ``WaitError/cancelled``, at once, where the task was cancelled
    ///   while it waited; ``WaitError/computation(_:)`` with the computation's error.
    public func value<Failure: Error>(
        forKey key: String,
        within limit: Duration,
        options: PutOptions = PutOptions(),
        computing: ComputeOptions = ComputeOptions(),
        orCompute compute: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(WaitError<Failure>) -> Value {
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
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
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
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(WaitError<Failure>) -> Value {
        try await FlightRequest(self, key, options, computing, within: limit)
            .end { () async throws(Failure) in try compute() }.get()
    }
}
