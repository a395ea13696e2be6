// SPDX-License-Identifier: Apache-2.0

/// The reason for a closure's call, and the previous value, which lets it avoid unnecessary work.
///
/// ```swift
/// let hit = try await cache.hit(forKey: url) { computation in
///     let answer = try await fetch(computation.key, unlessMatching: computation.previous?.entry.entityTag)
///     if answer.isUnchanged { return .unchanged(PutOptions(expires: .after(answer.lifetime))) }
///     return .value(answer.body, PutOptions(expires: .after(answer.lifetime), entityTag: answer.entityTag))
/// }
/// ```
public struct Computation<Value: Sendable>: Sendable {
    /// The key whose value is requested.
    public let key: String
    /// Why the closure is called.
    public let reason: Reason
    /// The stored value, even if it has expired or is too old for the caller; nil if there is none, or if its stale
    /// period is over.
    public let previous: CacheHit<Value>?

    /// Why a value is computed.
    public enum Reason: String, Sendable {
        /// There is no value.
        case absent
        /// The stored value has expired, or is older than the caller accepts (``ReadOptions/maximumAge``), and the caller
        /// waits.
        case expired
        /// The caller has already received the stored value, which is being replaced in the background
        /// (``ReadOptions/staleWhileRevalidate``, ``ReadOptions/earlyRefresh``).
        case stale
        /// The caller requests a new value even if one is stored (``ReadOptions/recomputes``).
        case forced
    }
}

/// A closure's decision: a value and its options, or that the key has no value.
public enum Computed<Value: Sendable>: Sendable {
    /// A value, to be stored with these options.
    case value(Value, PutOptions = PutOptions())
    /// A value that is returned only to the waiting callers in this process, and is not stored.
    ///
    /// Callers in other processes compute the value themselves. A stored value of the key stays.
    case unkept(Value)
    /// The previous value (``Computation/previous``) is valid again, with these options; its bytes are neither written nor
    /// copied.
    ///
    /// The value counts as stored now. Options that are left out (stale period, tags, entity tag …) keep their values,
    /// except the expiration, which becomes the configuration's default. If another caller has stored a different value
    /// meanwhile, that value stays. If there is no previous value, the call throws ``CacheError/Code/invalidArgument``.
    case unchanged(PutOptions = PutOptions())
    /// The key has no value, which all processes remember for this time.
    ///
    /// Until the time is over the key is a miss, and calls whose closure can return this case don't run their closure.
    ///
    /// A stored value of the key is removed. If the time is zero, nothing is remembered.
    case nothing(for: Duration)
}
