// SPDX-License-Identifier: Apache-2.0

import CacheStore

/// A lock that a process holds, or one permit of it: what `lock(_:permits:within:)` gives.
///
/// It is held until ``unlock()``, until the last reference to this object goes, or until the process dies,
/// whatever kills it. In a child made by fork(2) this object does nothing: the lock stays its parent's.
///
/// A `let` that is not used any more may go before the end of its scope. So give the lock back in a `defer`,
/// which also keeps it until then, or use ``whileHeld(isolation:_:)``.
public final class CacheLock: Sendable {
    /// The name by which it was asked for.
    public let name: String
    private let permit: FlightLock

    init(_ name: String, _ permit: FlightLock) {
        self.name = name
        self.permit = permit
    }

    deinit {
        // On whatever thread this is: nothing in it waits.
        permit.abandon()
    }

    /// Gives the lock back; does nothing if that was done before.
    ///
    /// Four system calls. If the object is released without this call, the lock is free too, but its file stays until the lock is
    /// taken again or until the next collection.
    @available(*, noasync, message: "it waits for the disk: use `whileHeld`, or let go of the lock")
    public func unlock() {
        permit.release()
    }

    /// Runs `body` and then gives the lock back, however `body` ends.
    ///
    /// ```swift
    /// try await cache.lock("report", within: .seconds(60)).whileHeld { try await writeReport() }
    /// ```
    ///
    /// The lock doesn't stand in the way of the task's cancellation, and is not given back by it before
    /// `body` has ended.
    ///
    /// - Parameters:
    ///   - isolation: where `body` runs: with the caller, unless something else is given.
    ///   - body: what to do meanwhile.
    /// - Returns: what `body` returns.
    /// - Throws: what `body` throws.
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
