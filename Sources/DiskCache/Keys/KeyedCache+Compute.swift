// SPDX-License-Identifier: Apache-2.0

// The synchronous forms block, so overload resolution must never choose them in asynchronous code: they are disfavored, and
// each has an asynchronous twin that takes the same closure. Without the twin, a closure that has a capture list and awaits
// nothing matches the synchronous form best, disfavored or not.

extension KeyedCache {
    /// Returns the value of `key`, computed and stored if it is missing, once for all threads and processes that need it at
    /// the same time.
    ///
    /// If another caller is computing the value, this waits and returns that value. If that computation fails, exactly one
    /// of the waiting callers computes next, with its own closure; if the computing process dies, one of the waiting
    /// callers takes over at once. Failures of the cache itself (no space, no permission, a missing directory, a closed
    /// cache, an invalid expiration) are never thrown here: the value is then computed, still once for the concurrent
    /// callers in this process, and not stored.
    ///
    /// A stored value that does not decode is removed and recomputed; a computed value that cannot be encoded is returned but
    /// not stored.
    ///
    /// A hit takes as many system calls as `get(forKey:)`. A computation takes about ten system calls besides the put. The closure
    /// must not request the same key: it would wait for itself. Don't use this form in Swift tasks: while it waits it
    /// blocks one of the few threads that run tasks, and if the computation that it waits for needs such a thread, it may
    /// wait forever.
    ///
    /// A computed value is stored even if the key was put or removed meanwhile. If you remove a value because its source has
    /// changed, a value computed from the old source may be stored afterwards, and stays until it expires.
    ///
    /// Because this call always returns a value, it treats `reading.source` as ``ReadOptions/Source/anywhere``, computes at
    /// the wait limit, and computes a key that another caller has recorded as having no value. `hit(forKey:)` honors these
    /// options and records.
    ///
    /// - Parameters:
    ///   - key: any non-empty string.
    ///   - options: the computed value's expiration and other properties; nil for the view's default options.
    ///   - reading: how old a value may be, and how long to wait.
    ///   - compute: computes the value; runs on this thread or, for a background refresh, on another thread after this call
    ///     has returned.
    /// - Throws: only the errors of `compute`.
    @_disfavoredOverload
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try FlightRequest(self, key, options, reading).value(compute)
    }

    /// Returns the value of `key`, computed and stored if it is missing, once for all tasks, threads and processes that need
    /// it at the same time.
    ///
    /// Like the synchronous form, but blocks no thread while it waits. A task that is cancelled while it waits for another
    /// caller's computation stops waiting at once and runs its own closure, which can detect the cancellation and throw:
    /// only the closure's errors can be thrown here. A task that is cancelled while it computes returns its closure's value
    /// or throws its error; after an error, one of the waiting callers computes next. A value computed by a cancelled task
    /// is stored.
    ///
    /// - Parameters:
    ///   - key: any non-empty string.
    ///   - options: the computed value's expiration and other properties; nil for the view's default options.
    ///   - reading: how old a value may be, and how long to wait.
    ///   - compute: computes the value; runs in this task or, for a background refresh, in a separate task.
    /// - Throws: only the errors of `compute`.
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await FlightRequest(self, key, options, reading).value(compute)
    }

    /// Returns the value of `key`; if it is missing, a closure that awaits nothing computes it.
    ///
    /// Otherwise like the asynchronous form with a closure that awaits: it blocks no thread while it waits, and the closure
    /// runs in this task. In asynchronous code the compiler chooses this form, never the blocking one.
    public func value<Failure: Error>(
        forKey key: String,
        options: PutOptions? = nil,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await FlightRequest(self, key, options, reading)
            .value { () async throws(Failure) in try compute() }
    }

    // MARK: Deciding a key's outcome

    /// Returns the value of `key`; if there is none, the closure decides what happens to the key, once for all threads and
    /// processes that need it at the same time.
    ///
    /// The closure gets the reason for the call and the previous value, and returns a value with its options, or states
    /// that there is none (``Computed``). All waiting callers get this decision. Failures of the cache itself are never
    /// thrown: a value that can't be stored is still returned. A hit costs no more than a get. A miss costs one system call
    /// more than with `value(forKey:)`, to check whether the key is recorded as having no value, and four more if the value
    /// has expired.
    ///
    /// Don't use this form in Swift tasks, because it blocks the thread.
    ///
    /// - Parameters:
    ///   - key: any non-empty string.
    ///   - reading: which values are accepted, where to look, and how long to wait.
    ///   - compute: decides the outcome; runs on this thread or, for a background refresh, on another thread after this call
    ///     has returned. It must not request the same key.
    /// - Returns: the value, with its origin (``CacheHit/source``); nil if there is no value, or if none was found and the
    ///   call must not compute (``ReadOptions/source``).
    /// - Throws: the closure's errors; with ``ReadOptions/failsAtWaitLimit``, ``CacheError/Code/timedOut`` if another
    ///   caller is still computing at the wait limit; the message names its process.
    @_disfavoredOverload
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Value>) throws -> Computed<Value>
    ) throws -> CacheHit<Value>? {
        try FlightRequest(self, key, reading).hit(compute)
    }

    /// Returns the value of `key`; if there is none, the closure decides what happens to the key, once for all tasks,
    /// threads and processes that need it at the same time.
    ///
    /// Like the synchronous form, but blocks no thread while it waits.
    ///
    /// - Parameters:
    ///   - key: any non-empty string.
    ///   - reading: which values are accepted, where to look, and how long to wait.
    ///   - compute: decides the outcome; runs in this task or, for a background refresh, in a separate task.
    /// - Returns: the value; nil if there is no value, or if none was found and the call must not compute.
    /// - Throws: the closure's errors; ``CacheError/Code/timedOut`` like the synchronous form; `CancellationError`, at
    ///   once, if the task was cancelled while it waited for another caller.
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Value>) async throws -> Computed<Value>
    ) async throws -> CacheHit<Value>? {
        try await FlightRequest(self, key, reading).hit(compute)
    }

    /// Returns the value of `key`; if there is none, a closure that awaits nothing decides what happens to the key.
    ///
    /// Otherwise like the asynchronous form with a closure that awaits.
    public func hit(
        forKey key: String,
        reading: ReadOptions = ReadOptions(),
        orCompute compute: @escaping @Sendable (Computation<Value>) throws -> Computed<Value>
    ) async throws -> CacheHit<Value>? {
        try await FlightRequest(self, key, reading)
            .hit { (computation: Computation<Value>) async throws in try compute(computation) }
    }
}
