// SPDX-License-Identifier: Apache-2.0

import CacheStore
public import FoundationEssentials
import Platform

/// What `value(forKey:orCompute:)` may do besides waiting and computing; by default nothing.
///
/// Callers need not agree: each gets only what its own options allow. Negative spans count as zero.
public struct ComputeOptions: Sendable, Equatable {
    /// For how long after its expiration the old value is returned at once, while one computation in the
    /// background, one across all processes, replaces it.
    ///
    /// Default: zero, never. RFC 5861, section 3.
    public var staleWhileRevalidate: Duration = .zero
    /// For how long after its expiration the old value is returned if the computation fails.
    ///
    /// Default: zero, never. RFC 5861, section 4.
    public var staleIfError: Duration = .zero
    /// How eagerly a value is recomputed before it expires, in the background and by chance, so that
    /// nobody has to wait when it does.
    ///
    /// The β of Vattani, Chierichetti and Lowenstein, "Optimal probabilistic cache stampede prevention" (VLDB
    /// 2015): the longer the last computation took and the nearer the expiration is, the more likely; 1 suits
    /// most, more is earlier. If accesses extend a value's life, there is nothing to anticipate, and nothing is
    /// done. Default: 0, never.
    public var earlyRefresh: Double = 0
    /// For how long the error of a computation in this process is thrown again to callers that ask for the same
    /// key, without computing.
    ///
    /// Cancellations are not remembered. Default: zero, not at all.
    public var failureMemory: Duration = .zero
    /// How long to wait for another caller's computation before computing all the same.
    ///
    /// The callers of a process that have waited this long share one computation; those that have waited for that
    /// as long again begin another. The computation itself is not limited. Default: nil, wait however long it takes,
    /// even for a process that is stopped (SIGSTOP, a debugger).
    public var waitLimit: Duration?

    /// The defaults, with what is given here.
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

    /// The terms on which a value is stored that took `computeTime`: as asked for, with that, and so that it stays after
    /// its expiration for as long as these options may need it.
    func terms(_ asked: PutOptions, computeTime: Duration) -> PutOptions {
        var terms = asked
        terms.computeTime = asked.computeTime ?? computeTime
        let needed = max(staleWhileRevalidate, staleIfError)
        if needed > .zero { terms.staleFor = max(needed, asked.staleFor ?? .zero) }
        return terms
    }
}

/// Why `value(forKey:within:orCompute:)` gave no value.
public enum WaitError<Failure: Error>: Error {
    /// Another caller computes the value, and was not done within the limit.
    ///
    /// It goes on; its process, as far as that is known.
    case timedOut(ComputingProcess?)
    /// The waiting task was cancelled.
    case cancelled
    /// The computation of this caller failed.
    case computation(Failure)
}

extension WaitError: Equatable where Failure: Equatable {}

/// A process that computes the value of a key.
public struct ComputingProcess: Sendable, Equatable {
    /// Its identifier, in its own namespace of processes.
    public let processIdentifier: Int32
    /// Since when, by the system's clock.
    public let since: Date

    init(_ holder: FlightHolder) {
        processIdentifier = holder.process
        since = holder.since.date
    }
}
