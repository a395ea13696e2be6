// SPDX-License-Identifier: Apache-2.0

/// How a request uses stored responses.
///
/// No mode makes more of a response than its origin allows: `no-store` is never kept, and what says
/// `no-cache`, or `must-revalidate` and is stale, is never answered without a validation, not even in
/// ``cacheFirst`` and ``offline`` (RFC 9111, section 5.2.2). A lifetime of one's own is how to overrule that.
public enum FetchMode: String, Sendable, CaseIterable {
    /// As RFC 9111 has it: what is fresh is answered, what is stale is validated, the rest is fetched. Its
    /// text is `default`.
    case standard = "default"
    /// A stored response is validated first, unless it is fresh, `immutable` and of https (RFC 8246).
    case revalidate
    /// It is fetched, whatever is stored, and caches on the way are told to do likewise.
    case reload
    /// Nothing is fetched: what may be used without validation, or nothing. Its text is `only-if-cached`.
    case onlyIfCached = "only-if-cached"
    /// The stored response, even if it is stale; otherwise it is fetched. Its text is `cache-first`.
    case cacheFirst = "cache-first"
    /// Without the network: the stored response, even if it is stale, or nothing.
    case offline
}
