// SPDX-License-Identifier: Apache-2.0

public import CacheStore
import Platform

extension CacheDirectory {
    /// Removes values that are no longer needed, and those that exceed the limits.
    ///
    /// Safe at any time: readers and writers do not wait for a collection. If its process is killed, the next collection
    /// does the rest. Only one collection runs at a time: this call waits for the collections of other processes.
    ///
    /// - Parameters:
    ///   - options: the limits, and the keys that may be removed.
    ///   - progress: called from time to time, on the calling thread.
    /// - Throws: ``CacheError``, with the code `busy` if another collection takes longer than `patience`, `badConfiguration`
    ///   if the directory's limits cannot be read.
    /// - Complexity: O(*n*) in keys and values.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func collect(
        _ options: CollectionOptions = CollectionOptions(),
        progress: @escaping @Sendable (CacheProgress) -> Void = { _ in }
    ) throws(CacheError) -> CollectionReport {
        // Removing only expired values does not need the limits.
        let request = try options.request(options.expiredOnly ? CacheLimits() : limits())
        do throws(CacheError) {
            return try withStore { (store, now) throws(CacheError) in
                var request = request
                let rest = request.pace.pause
                // No pause while writers wait for space: this collection holds the lock, so no other process can make that
                // space.
                request.pace.pause = { store.isPressed || rest($0) }
                request.progress = progress
                return try Sweep.run(request, on: store, now: now)
            }
        } catch {
            guard error.code == .busy else { throw error }
            throw naming(error)
        }
    }

    /// Returns the error with the process that is collecting, if known.
    private func naming(_ error: CacheError) -> CacheError {
        let record = SweepRecord.last(in: cache.core.store.directory).flatMap { $0.ended == nil ? $0 : nil }
        let process = record.flatMap { cache.core.store.visibleSweeper($0) }
        let holder =
            record.map { record in
                let name = process.map { "process \($0)" } ?? "another process"
                let seconds = max(0, (Timestamp.now - record.began) / .seconds(1))
                return "\(name) has been collecting for \(Int(seconds)) s"
            } ?? "another process is collecting"
        var advice = "wait for it, or try again later"
        if let process, ProcFiles.isStopped(process) ?? false {
            advice = "it is stopped: resume it (kill -CONT \(process)) or end it"
        }
        let message = "collect garbage in \(path): \(holder): \(advice)"
        return CacheError(.busy, message, cause: error.cause, path: error.path)
    }

    /// Reads and hashes all values, or a sample of them, and compares the results with the metadata.
    ///
    /// Works on several threads. Needs about 27 bytes of memory per value, 270 MB for 10 million.
    ///
    /// - Parameters:
    ///   - options: what to check, and whether to repair damage.
    ///   - found: called for each problem as it is found, on any thread.
    ///   - progress: called from time to time, on the calling thread.
    /// - Complexity: O(*n*) in the bytes of the values that are read.
    @discardableResult
    @available(*, noasync, message: "it waits for the disk: use `blocking`")
    public func verify(
        _ options: VerifyOptions = VerifyOptions(),
        found: @escaping @Sendable (VerifyReport.Finding) -> Void = { _ in },
        progress: @escaping @Sendable (CacheProgress) -> Void = { _ in }
    ) throws(CacheError) -> VerifyReport {
        switch options.sample {
        case .percent(let percent) where !(0...100).contains(percent):
            throw CacheError(.invalidArgument, "verify \(percent) per cent: use 0 to 100")
        case .count(let count) where count < 0:
            throw CacheError(.invalidArgument, "verify \(count) values: it can't be negative: use 0 or more")
        default: break
        }
        return try withStore { (store, _) throws(CacheError) in
            try Verification.run(options, on: store, found: found, progress: progress)
        }
    }
}
