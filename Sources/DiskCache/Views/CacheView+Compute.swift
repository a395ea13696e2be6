// SPDX-License-Identifier: Apache-2.0

import CacheStore

// The synchronous forms block, so asynchronous code must never get them: they are disfavoured, and each has an
// asynchronous twin that takes the same closure. Without the twin, a closure that has a capture list and awaits nothing
// matches the synchronous form best, disfavoured or not.

extension CacheView {
    /// The value of `key`, computed and stored if it is not there, once for all threads and
    /// processes that want it at the same time.
    ///
    /// Like `value(forKey:orCompute:)` of ``SharedCache``. A stored value that does not decode is removed and computed
    /// anew; a computed one that can't be encoded is returned and not kept.
    ///
    /// - Parameters:
    ///   - key: its key in this view.
    ///   - options: until when a computed value is valid, and what else to keep; nil: those of the view.
    ///   - reading: how old a value may be, and how long to wait.
    ///   - compute: makes the value; on this thread or, for a refresh in the background, on another one
    ///     after this call has returned.
    /// - Throws: only the computation's own error.
    @_disfavoredOverload
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try FlightRequest(source, whole(key), options ?? self.options, reading).value(compute)
    }

    /// The value of `key`, computed and stored if it is not there, once for all tasks, threads and
    /// processes that want it at the same time.
    ///
    /// Like the form for bytes; blocks no thread while it waits.
    ///
    /// - Parameters:
    ///   - key: its key in this view.
    ///   - options: until when a computed value is valid, and what else to keep; nil: those of the view.
    ///   - reading: how old a value may be, and how long to wait.
    ///   - compute: makes the value; in this task or, for a refresh in the background, in a task of its own.
    /// - Throws: only the computation's own error.
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await FlightRequest(source, whole(key), options ?? self.options, reading).value(compute)
    }

    /// The value of `key`, computed if it is not there by a closure that awaits nothing.
    ///
    /// Otherwise like the asynchronous form with a closure that awaits: it blocks no thread while it waits, and the
    /// closure runs in this task. In asynchronous code the compiler chooses this form, and never the one that blocks.
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await FlightRequest(source, whole(key), options ?? self.options, reading)
            .value { () async throws(Failure) in try compute() }
    }

    /// What there is for `key`, or what the closure decides about it, once for all threads and processes that want it
    /// at the same time.
    ///
    /// Like `hit(forKey:orCompute:)` of ``SharedCache``; a value for which the closure gives no terms is stored with those
    /// of the view. A stored value that does not decode is removed and computed anew.
    @_disfavoredOverload
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Value>) throws -> Computed<Value>
    ) throws -> CacheHit<Value>? {
        try deciding(key, reading)
            .hit { (computation: Computation<Value>) throws in try compute(own(computation)) }
    }

    /// What there is for `key`, or what the closure decides about it; blocks no thread while it waits.
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Value>) async throws -> Computed<Value>
    ) async throws -> CacheHit<Value>? {
        try await deciding(key, reading)
            .hit { (computation: Computation<Value>) async throws in try await compute(own(computation)) }
    }

    /// What there is for `key`, or what a closure that awaits nothing decides about it.
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Value>) throws -> Computed<Value>
    ) async throws -> CacheHit<Value>? {
        try await deciding(key, reading)
            .hit { (computation: Computation<Value>) async throws in try compute(own(computation)) }
    }

    // MARK: Requests

    private func deciding(
        _ key: String,
        _ reading: ReadOptions
    ) -> FlightRequest<CodecSource<Codec>, any Error> {
        FlightRequest(source, whole(key), reading, usual: options)
    }

    /// The same with the key as this view has it.
    private func own(_ computation: Computation<Value>) -> Computation<Value> {
        Computation(
            key: withoutPrefix(computation.key),
            reason: computation.reason,
            previous: computation.previous
        )
    }
}
