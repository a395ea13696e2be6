// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// A lock that this process holds, or one permit of it, as returned by `lock(_:permits:within:)`.
///
/// It is held until ``unlock()``, until the last reference to this object is released, or until the process dies, for
/// whatever reason. In a child created by fork(2) this object does nothing: the parent keeps the lock.
///
/// Swift may release an object after its last use, before the end of its scope. So unlock in a `defer`, which keeps the
/// object until then, or use ``whileHeld(isolation:_:)``.
public final class CacheLock: Sendable {
    /// The name of the lock.
    public let name: String
    private let permit: FlightLock

    init(_ name: String, _ permit: FlightLock) {
        self.name = name
        self.permit = permit
    }

    deinit {
        // This runs on any thread: `abandon` never waits.
        permit.abandon()
    }

    /// Releases the lock; calling it again has no effect.
    ///
    /// Four system calls. Releasing the object without this call also frees the lock, but the lock's file stays until the
    /// lock is acquired again or until the next collection.
    @available(*, noasync, message: "it waits for the disk: use `whileHeld`, or let go of the lock")
    public func unlock() {
        permit.release()
    }

    /// Runs `body` and then releases the lock, however `body` ends.
    ///
    /// ```swift
    /// try await cache.lock("report", within: .seconds(60)).whileHeld { try await writeReport() }
    /// ```
    ///
    /// Cancelling the task does not release the lock before `body` has ended.
    ///
    /// - Parameters:
    ///   - isolation: the actor on which `body` runs; by default the caller's.
    ///   - body: the work to do while the lock is held.
    /// - Returns: the result of `body`.
    /// - Throws: the error of `body`.
    public func whileHeld<Value: Sendable, Failure: Error>(
        isolation: isolated (any Actor)? = #isolation,
        _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure>
        do throws(Failure) {
            result = .success(try await body())
        } catch {
            result = .failure(error)
        }
        let permit = permit
        await offload(on: .reading) { permit.release() }
        return try result.get()
    }
}
