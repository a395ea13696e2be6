// SPDX-License-Identifier: Apache-2.0

import Platform

/// Options for reading and computing a value.
///
/// By default a read accepts an unexpired value from any tier.
///
/// ```swift
/// let hit = try cache.get(forKey: "page", reading: ReadOptions(maximumAge: .seconds(60)))
/// ```
///
/// Callers need not use the same options: each gets only values that its own options allow. Negative durations count as
/// zero. Passing options costs almost nothing: no allocation, no system call.
public struct ReadOptions: Sendable, Equatable {
    // MARK: Accepted values

    /// Whether an expired value is acceptable within its stale period (``PutOptions/staleFor``).
    ///
    /// Default: false.
    public var acceptsStale = false
    /// The maximum age of the value, counted from when it was stored; an older value is a miss.
    ///
    /// The age is that at the beginning of the call, however long the call waits. Default: nil, any age.
    public var maximumAge: Duration?
    /// Where to look.
    ///
    /// Default: anywhere; calls that can compute do so if there is no value.
    public var source = Source.anywhere

    // MARK: Computing

    /// Whether to compute the value even if there is one, unless another caller is already computing it.
    ///
    /// A value stored after the call began is accepted. Until the new value is stored the old one stays, and can serve as a
    /// fallback (``staleIfError``). A plain get ignores this option. Default: false.
    public var recomputes = false
    /// How long after its expiration the old value is returned at once, while one background computation across all
    /// processes replaces it (RFC 5861, section 3).
    ///
    /// Default: zero, never.
    public var staleWhileRevalidate = Duration.zero
    /// How long after its expiration, or after exceeding ``maximumAge``, the old value is returned if the computation fails
    /// (RFC 5861, section 4).
    ///
    /// If this is positive, an unexpired value that was to be replaced (``recomputes``) is returned too. Default: zero,
    /// never.
    public var staleIfError = Duration.zero
    /// How eagerly a value is recomputed at random, in the background, before it expires, so that no caller waits when it
    /// expires.
    ///
    /// This is the β of Vattani, Chierichetti and Lowenstein, "Optimal probabilistic cache stampede prevention" (VLDB 2015).
    /// A computation becomes more likely the longer the last one took and the nearer the expiration is; 1 suits most cases,
    /// larger numbers recompute earlier. It has no effect on values with a sliding expiration. Default: 0, never.
    public var earlyRefresh = 0.0
    /// How long callers in this process that request the same key get the error of a failed computation, without computing
    /// again.
    ///
    /// Cancellations are not remembered. Default: zero, never.
    public var failureMemory = Duration.zero
    /// How long to wait for another caller's computation before computing anyway, or failing (``failsAtWaitLimit``).
    ///
    /// The callers in one process that have waited this long share one computation; callers that have waited twice as long
    /// start another. The computation itself is not limited. Default: nil, wait indefinitely, even for a stopped process
    /// (SIGSTOP, a debugger).
    public var waitLimit: Duration?
    /// Whether `hit` and `values` throw an error at the ``waitLimit`` instead of computing.
    ///
    /// `value(forKey:)` throws only the errors of its closure, so it computes. Default: false.
    public var failsAtWaitLimit = false
    /// Whether remote stores are asked for missing values.
    ///
    /// A flight asks them itself, once for all its callers.
    package var asksRemote = true

    /// Where a read may look.
    public enum Source: Sendable {
        /// In memory, on disk, on remote servers if configured, and finally by computing.
        case anywhere
        /// In memory, on disk and on remote servers, without computing.
        ///
        /// `value(forKey:)`, which always has to return a value, treats this as ``anywhere``.
        case cache
        /// In the memory of this process only, without any system call.
        ///
        /// A value that must be looked up on disk is a miss; in a directory without a control file every value must be.
        /// `value(forKey:)` treats this as ``anywhere``.
        case memory
    }

    /// Creates the default options, except for the given ones.
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
    /// Returns options that accept values of any age, from this machine only.
    package static func here(acceptsStale: Bool = false) -> ReadOptions {
        var options = ReadOptions(acceptsStale: acceptsStale)
        options.asksRemote = false
        return options
    }

    /// The same options, but remote servers are not asked.
    var withoutOthers: ReadOptions {
        var options = self
        options.asksRemote = false
        return options
    }

    /// Whether remote servers are asked for a value that this machine does not have.
    var mayAskRemote: Bool { asksRemote && source != .memory }

    /// Returns the time before which a stored value is too old for a read that begins at `now`; nil if none is.
    @inline(__always)
    func oldest(at now: @autoclosure () -> Timestamp) -> Timestamp? {
        guard let maximumAge else { return nil }
        return now().advanced(byNanoseconds: -max(0, maximumAge.saturatingNanoseconds))
    }

    /// Returns the options to store a computed value with: the requested ones, the time it took, and a stale period that is
    /// long enough for these read options.
    func terms(_ asked: PutOptions, computeTime: Duration) -> PutOptions {
        var terms = asked
        terms.computeTime = asked.computeTime ?? computeTime
        let needed = max(staleWhileRevalidate, staleIfError)
        if needed > .zero { terms.staleFor = max(needed, asked.staleFor ?? .zero) }
        return terms
    }
}
