// SPDX-License-Identifier: Apache-2.0

import Platform

/// Hashing every object anew and holding every entry against them, beside readers and writers.
///
/// Several threads share out the shards: first those of the objects, then, when all of them have been read, those of
/// the entries.
package struct Verification {
    /// Verifies `store`, and deletes what is corrupt or dangling where that is asked for.
    ///
    /// With a sample, that share of the objects is read, and as large a share of the entries is looked at; their
    /// objects must then be there and as long as they should, and are hashed only where they are not.
    ///
    /// - Parameters:
    ///   - found: called with everything that is not as it should be, at once, by any of the threads.
    ///   - progress: called now and then, on the calling thread.
    /// - Complexity: O(*n*) in the bytes of all objects: about 1.5 GB/s a thread with SHA instructions, warm. Memory:
    ///   ``VerifiedObjects``, the names of one shard a thread, and 32 bytes for each object of a sample that is a
    ///   count.
    package static func run(
        _ request: VerificationRequest,
        on store: Store,
        found: @escaping @Sendable (VerificationFinding) -> Void = { _ in },
        progress: @escaping @Sendable (SweepProgress) -> Void = { _ in }
    ) throws(StoreError) -> VerificationReport {
        var worker = VerificationWorker(request, on: store, found: found, progress: progress)
        try worker.chooseSample()
        try share(request.threads, &worker, .verifying) { (worker, shard) throws(StoreError) in
            try worker.verifyObjects(inShard: shard)
        }
        try share(request.threads, &worker, .verifyingEntries) { (worker, shard) throws(StoreError) in
            try worker.verifyEntries(inShard: shard)
        }
        return worker.finishedReport
    }

    private static func share(
        _ threads: Int,
        _ worker: inout VerificationWorker,
        _ phase: SweepProgress.Phase,
        _ task: @escaping @Sendable (inout VerificationWorker, Int) throws(StoreError) -> Void
    ) throws(StoreError) {
        worker.begin(phase)
        try SweepCrew.run(Array(0..<256), threads: threads, worker: &worker, progress: { _ in }) {
            (worker, shard) throws(StoreError) in
            try task(&worker, shard)
            return true
        }
    }
}
