// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import FoundationEssentials
import Platform

/// What `value(forKey:orCompute:)` may do besides waiting and computing; by default nothing.
///
/// Callers need not agree: each gets only what its own options allow. Negative durations count as zero.
public struct ComputeOptions: Sendable, Equatable {
    /// For how long after its expiration the old value is returned at once, while one computation in the
    /// background, one across all processes, replaces it (RFC 5861, section 3).
    ///
    /// Default: zero, never.
    public var staleWhileRevalidate: Duration = .zero
    /// For how long after its expiration the old value is returned if the computation fails (RFC 5861, section
    /// 4).
    ///
    /// Default: zero, never.
    public var staleIfError: Duration = .zero
    /// How eagerly a value is recomputed before it expires, in the background and by chance, so that nobody has
    /// to wait when it does.
    ///
    /// This is the β of Vattani, Chierichetti and Lowenstein, "Optimal probabilistic cache stampede prevention"
    /// (VLDB 2015). A computation becomes more likely the longer the last one took and the nearer the
    /// expiration is; 1 suits most cases, more is earlier. It has no effect on values whose life accesses
    /// extend. Default: 0, never.
    public var earlyRefresh: Double = 0
    /// For how long the error of a computation in this process is thrown again, without computing, to callers
    /// that ask for the same key.
    ///
    /// Cancellations are not remembered. Default: zero, not at all.
    public var failureMemory: Duration = .zero
    /// How long to wait for another caller's computation before computing anyway.
    ///
    /// Callers of one process that have waited this long share one computation; those that have waited for as
    /// long again start another. The computation itself is not limited. Default: nil, wait however long it
    /// takes, even for a process that is stopped (SIGSTOP, a debugger).
    public var waitLimit: Duration?

    /// The defaults, except for what is given.
    public init(
        staleWhileRevalidate: Duration = .zero,
        staleIfError: Duration = .zero,
        earlyRefresh: Double = 0,
        failureMemory: Duration = .zero,
        waitLimit: Duration? = nil
    ) {
        self.staleWhileRevalidate = staleWhileRevalidate
        self.staleIfError = staleIfError
        self.earlyRefresh = earlyRefresh
        self.failureMemory = failureMemory
        self.waitLimit = waitLimit
    }

    /// The options that a computed value is stored with: those that were asked for, the time it took, and a
    /// stale period that is long enough for these options.
    func terms(_ asked: PutOptions, computeTime: Duration) -> PutOptions {
        var terms = asked
        terms.computeTime = asked.computeTime ?? computeTime
        let needed = max(staleWhileRevalidate, staleIfError)
        if needed > .zero { terms.staleFor = max(needed, asked.staleFor ?? .zero) }
        return terms
    }
}

/// Why `value(forKey:within:orCompute:)` returned no value.
public enum WaitError<Failure: Error>: Error {
    /// Another caller is computing the value and was not done within the limit.
    ///
    /// It continues. The process is named if it is known.
    case timedOut(ComputingProcess?)
    /// The waiting task was cancelled.
    case cancelled
    /// The computation of this caller failed.
    case computation(Failure)
}

extension WaitError: Equatable where Failure: Equatable {}

extension ComputingProcess {
    /// Since when, by the system's clock.
    public var since: Date { moment.date }
}
