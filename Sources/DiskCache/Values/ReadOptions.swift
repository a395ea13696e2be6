// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a read accepts, and how it goes about it: by default a value that has not expired, from wherever it is.
///
/// ```swift
/// let hit = try cache.get(forKey: "page", reading: ReadOptions(maximumAge: .seconds(60)))
/// ```
///
/// Callers need not agree: each gets only what its own options allow. Negative durations count as zero. Passing these
/// costs nothing to speak of: no allocation, no system call.
public struct ReadOptions: Sendable, Equatable {
    // MARK: What will do

    /// Whether a value will do that has expired but is within the stale period that it was stored with
    /// (``PutOptions/staleFor``).
    ///
    /// Default: false.
    public var acceptsStale = false
    /// How long ago the value may have been stored at most; an older one is a miss.
    ///
    /// It counts from the moment at which the call begins, however long that waits. Default: nil, any age.
    public var maximumAge: Duration?
    /// Where to look.
    ///
    /// Default: anywhere; calls that can compute do so if there is no value.
    public var source = Source.anywhere

    // MARK: Computing

    /// Whether to compute the value even if there is one, unless another caller has begun to.
    ///
    /// A value that is stored after the call has begun will do. The old one stays until there is a new one, and to fall
    /// back on (``staleIfError``). A plain get takes no notice of this. Default: false.
    public var recomputes = false
    /// For how long after its expiration the old value is returned at once, while one computation in the
    /// background, one across all processes, replaces it (RFC 5861, section 3).
    ///
    /// Default: zero, never.
    public var staleWhileRevalidate = Duration.zero
    /// For how long after its expiration, or after it has become older than ``maximumAge``, the old value is returned
    /// if the computation fails (RFC 5861, section 4).
    ///
    /// With any time at all, so is one that has not expired and was to be replaced (``recomputes``). Default: zero,
    /// never.
    public var staleIfError = Duration.zero
    /// How eagerly a value is recomputed before it expires, in the background and by chance, so that no caller
    /// has to wait when it does.
    ///
    /// This is the β of Vattani, Chierichetti and Lowenstein, "Optimal probabilistic cache stampede prevention"
    /// (VLDB 2015). A computation becomes more likely the longer the last one took and the nearer the
    /// expiration is; 1 suits most cases, more is earlier. It has no effect on values whose life accesses
    /// extend. Default: 0, never.
    public var earlyRefresh = 0.0
    /// For how long the error of a computation in this process is thrown again, without computing, to callers
    /// that ask for the same key.
    ///
    /// Cancellations are not remembered. Default: zero, not at all.
    public var failureMemory = Duration.zero
    /// How long to wait for another caller's computation before computing anyway, or failing
    /// (``failsAtWaitLimit``).
    ///
    /// Callers of one process that have waited this long share one computation; those that have waited for as
    /// long again start another. The computation itself is not limited. Default: nil, wait however long it
    /// takes, even for a process that is stopped (SIGSTOP, a debugger).
    public var waitLimit: Duration?
    /// Whether `hit` and `values` throw an error at the ``waitLimit`` instead of computing.
    ///
    /// `value(forKey:)` throws no other error than its closure's, so it computes. Default: false.
    public var failsAtWaitLimit = false
    /// Whether remote stores are asked for missing values.
    ///
    /// A flight asks them itself, once for all its callers.
    package var asksRemote = true

    /// Where a read may look.
    public enum Source: Sendable {
        /// In memory, on disk, on other machines if there is something to share with, and at last by
        /// computing.
        case anywhere
        /// In memory, on disk and on other machines; nothing is computed. `value(forKey:)`, which always has
        /// a value to return, takes this as ``anywhere``.
        case cache
        /// In the memory of this process alone: never a system call. A value that has to be looked up on disk is a miss; in a
        /// directory without a control file that is every value. `value(forKey:)` takes this as ``anywhere``.
        case memory
    }

    /// The defaults, except for the given options.
    public init(
        acceptsStale: Bool = false,
        maximumAge: Duration? = nil,
        source: Source = .anywhere,
        recomputes: Bool = false,
        staleWhileRevalidate: Duration = .zero,
        staleIfError: Duration = .zero,
        earlyRefresh: Double = 0,
        failureMemory: Duration = .zero,
        waitLimit: Duration? = nil,
        failsAtWaitLimit: Bool = false
    ) {
        self.acceptsStale = acceptsStale
        self.maximumAge = maximumAge
        self.source = source
        self.recomputes = recomputes
        self.staleWhileRevalidate = staleWhileRevalidate
        self.staleIfError = staleIfError
        self.earlyRefresh = earlyRefresh
        self.failureMemory = failureMemory
        self.waitLimit = waitLimit
        self.failsAtWaitLimit = failsAtWaitLimit
    }
}

extension ReadOptions {
    /// Any value on this machine, of any age.
    package static func here(acceptsStale: Bool = false) -> ReadOptions {
        var options = ReadOptions(acceptsStale: acceptsStale)
        options.asksRemote = false
        return options
    }

    /// The same, on this machine alone.
    var withoutOthers: ReadOptions {
        var options = self
        options.asksRemote = false
        return options
    }

    /// Whether a get may take what the tiers give it as it is.
    ///
    /// Asked for each get, so that the rest is looked at by few.
    @inline(__always)
    var takesAnyAge: Bool { maximumAge == nil && source != .memory }

    /// Values that were stored before this moment are too old for a read that begins at `now`; nil: none are.
    func oldest(at now: Timestamp) -> Timestamp? {
        maximumAge.map { now.advanced(byNanoseconds: -max(0, $0.saturatingNanoseconds)) }
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
