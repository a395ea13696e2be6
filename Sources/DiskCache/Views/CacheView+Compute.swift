// SPDX-License-Identifier: Apache-2.0

import CacheStore

// The synchronous forms block, so asynchronous code must never resolve to them: they are disfavored, and each has an
// asynchronous twin that takes the same closure. Without the twin, a closure with a capture list and without `await` would
// match the synchronous form best, disfavored or not.

extension CacheView {
    /// Returns the value of `key`, computing and storing it if it is missing.
    ///
    /// It is computed once for all threads and processes that request it at the same time.
    ///
    /// Like `value(forKey:orCompute:)` of ``SharedCache``. A stored value that does not decode is removed and recomputed; a
    /// computed value that cannot be encoded is returned but not stored.
    ///
    /// - Parameters:
    ///   - key: the key in this view.
    ///   - options: the options of a computed value; nil for those of the view.
    ///   - reading: which values are acceptable, and how long to wait.
    ///   - compute: computes the value; on this thread or, for a refresh in the background, on another one after this call
    ///     has returned.
    /// - Throws: only the error of `compute`.
    @_disfavoredOverload
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try FlightRequest(source, whole(key), options ?? self.options, reading).value(compute)
    }

    /// Returns the value of `key`, computing and storing it if it is missing, without blocking a thread.
    ///
    /// It is computed once for all tasks, threads and processes that request it at the same time.
    ///
    /// Like the form for bytes.
    ///
    /// - Parameters:
    ///   - key: the key in this view.
    ///   - options: the options of a computed value; nil for those of the view.
    ///   - reading: which values are acceptable, and how long to wait.
    ///   - compute: computes the value; in this task or, for a refresh in the background, in a separate task.
    /// - Throws: only the error of `compute`.
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await FlightRequest(source, whole(key), options ?? self.options, reading).value(compute)
    }

    /// Returns the value of `key`, computed by a closure that does not suspend if it is missing.
    ///
    /// Otherwise like the form with an asynchronous closure: it blocks no thread while it waits, and the closure runs in
    /// this task. In asynchronous code the compiler chooses this form, and never the blocking one.
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await FlightRequest(source, whole(key), options ?? self.options, reading)
            .value { () async throws(Failure) in try compute() }
    }

    /// Returns the stored value of `key`, or the result of the closure if it is missing.
    ///
    /// The closure is called once for all threads and processes that request the key at the same time.
    ///
    /// Like `hit(forKey:orCompute:)` of ``SharedCache``; a value for which the closure gives no options is stored with those
    /// of the view. A stored value that does not decode is removed and recomputed.
    @_disfavoredOverload
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Value>) throws -> Computed<Value>
    ) throws -> CacheHit<Value>? {
        try deciding(key, reading)
            .hit { (computation: Computation<Value>) throws in try compute(own(computation)) }
    }

    /// Returns the stored value of `key`, or the result of the closure if it is missing; blocks no thread while it waits.
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Value>) async throws -> Computed<Value>
    ) async throws -> CacheHit<Value>? {
        try await deciding(key, reading)
            .hit { (computation: Computation<Value>) async throws in try await compute(own(computation)) }
    }

    /// Returns the stored value of `key`, or the result of a closure that does not suspend if it is missing.
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

    /// Returns the computation with the key in this view.
    private func own(_ computation: Computation<Value>) -> Computation<Value> {
        Computation(
            key: withoutPrefix(computation.key),
            reason: computation.reason,
            previous: computation.previous
        )
    }
}
