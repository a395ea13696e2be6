// SPDX-License-Identifier: Apache-2.0

import CacheStore

// The synchronous forms block, so asynchronous code must never get them: they are disfavoured, and each has an
// asynchronous twin that takes the same closure. Without the twin, a closure that has a capture list and awaits nothing
// matches the synchronous form best, disfavoured or not.

extension TypedCache {
    /// The value of `key`, computed and stored if it is not there, once for all threads and
    /// processes that want it at the same time.
    ///
    /// Like `value(forKey:orCompute:)` of ``SharedCache``. A stored value that does not decode is computed and
    /// replaced; a computed one that can't be encoded is returned and not kept.
    ///
    /// - Parameters:
    ///   - key: any string but the empty one.
    ///   - options: until when a computed value is valid, and what else to keep.
    ///   - reading: how old a value may be, and how long to wait.
    ///   - compute: makes the value; on this thread or, for a refresh in the background, on another one
    ///     after this call has returned.
    /// - Throws: only the computation's own error.
    @_disfavoredOverload
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions = PutOptions(),
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try FlightRequest(self, key, options, reading).value(compute)
    }

    /// The value of `key`, computed and stored if it is not there, once for all tasks, threads and
    /// processes that want it at the same time.
    ///
    /// Like the form for bytes; blocks no thread while it waits.
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
        orCompute compute: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
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
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await FlightRequest(self, key, options, reading)
            .value { () async throws(Failure) in try compute() }
    }

    /// What there is for `key`, or what the closure decides about it, once for all threads and processes that want it
    /// at the same time.
    ///
    /// Like `hit(forKey:orCompute:)` of ``SharedCache``. A stored value that does not decode is computed and replaced.
    @_disfavoredOverload
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Value>) throws -> Computed<Value>
    ) throws -> CacheHit<Value>? {
        try FlightRequest(self, key, reading).hit(compute)
    }

    /// What there is for `key`, or what the closure decides about it; blocks no thread while it waits.
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Value>) async throws -> Computed<Value>
    ) async throws -> CacheHit<Value>? {
        try await FlightRequest(self, key, reading).hit(compute)
    }

    /// What there is for `key`, or what a closure that awaits nothing decides about it.
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Value>) throws -> Computed<Value>
    ) async throws -> CacheHit<Value>? {
        try await FlightRequest(self, key, reading)
            .hit { (computation: Computation<Value>) async throws in try compute(computation) }
    }
}
