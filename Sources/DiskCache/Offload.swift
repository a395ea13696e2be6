// SPDX-License-Identifier: Apache-2.0

import Dispatch

/// Threads for calls that block in the kernel.
///
/// Swift's own pool has as many threads as there are processors and must never wait: sixteen jobs that
/// block for 200 ms there take as long as eight after one another on two processors. Dispatch adds
/// threads while some are blocked.
private let queue = DispatchQueue(label: "diskcache", attributes: .concurrent)

/// Does blocking work on a thread of its own, and suspends the task until it is done.
func offload<Value: Sendable, Failure: Error>(
    _ work: @escaping @Sendable () throws(Failure) -> Value
) async throws(Failure) -> Value {
    let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
        queue.async {
            do throws(Failure) {
                continuation.resume(returning: .success(try work()))
            } catch {
                continuation.resume(returning: .failure(error))
            }
        }
    }
    return try result.get()
}

/// Does blocking work on a thread of its own, which needs none of Swift's pool: all of that may wait for it.
func offloadDetached(_ work: @escaping @Sendable () -> Void) {
    queue.async(execute: work)
}
