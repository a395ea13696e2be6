// SPDX-License-Identifier: Apache-2.0

/// The reason for a call of a closure, and the previous value, so that it can compute as little as possible.
///
/// ```swift
/// let hit = try await cache.hit(forKey: url) { computation in
///     let answer = try await fetch(computation.key, unlessMatching: computation.previous?.entry.entityTag)
///     if answer.isUnchanged { return .unchanged(PutOptions(expires: .after(answer.lifetime))) }
///     return .value(answer.body, PutOptions(expires: .after(answer.lifetime), entityTag: answer.entityTag))
/// }
/// ```
public struct Computation<Value: Sendable>: Sendable {
    /// The key that a value is wanted for.
    public let key: String
    /// Why there is none to return.
    public let reason: Reason
    /// The value that is there, though it has expired or is too old for the caller; nil if there is none, or its stale
    /// period is over.
    public let previous: CacheHit<Value>?

    /// Why a value is computed.
    public enum Reason: String, Sendable {
        /// There is none.
        case absent
        /// The one that is there has expired, or is older than the caller accepts (``ReadOptions/maximumAge``), and the
        /// caller waits.
        case expired
        /// The one that is there was returned already, and is being replaced in the background
        /// (``ReadOptions/staleWhileRevalidate``, ``ReadOptions/earlyRefresh``).
        case stale
        /// The caller wants another one, whatever is there (``ReadOptions/recomputes``).
        case forced
    }
}

/// What a closure decides: the value and its terms, or that there is none.
public enum Computed<Value: Sendable>: Sendable {
    /// A value, to be stored with these options.
    case value(Value, PutOptions = PutOptions())
    /// A value for the waiting callers in this process, which is not stored.
    ///
    /// Callers in other processes compute their own. A stored value stays.
    case unkept(Value)
    /// The previous value (``Computation/previous``) is good again, on these terms: no byte of it is written or copied.
    ///
    /// It counts as stored now. Terms that the options leave out (stale period, tags, entity tag …) stay as they were, except
    /// the expiration, which is then the configuration's default. If another caller has stored another value meanwhile, that
    /// one stays. If there is no previous value, the call throws ``CacheError/Code/invalidArgument``.
    case unchanged(PutOptions = PutOptions())
    /// There is no value, which all processes remember for this time: until then the key is a miss, and calls whose closure
    /// could decide the same don't compute it.
    ///
    /// A stored value of the key is removed. With a time of zero it is not remembered.
    case nothing(for: Duration)
}
