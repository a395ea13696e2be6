// SPDX-License-Identifier: Apache-2.0

/// How a request uses stored responses.
///
/// No mode overrides the origin server: `no-store` responses are never stored, and a response with `no-cache`, or a stale
/// one with `must-revalidate`, is never returned without validation, not even in ``cacheFirst`` and ``offline`` (RFC 9111,
/// section 5.2.2). Use ``FetchRequest/timeToLive`` to override that.
public enum FetchMode: String, Sendable, CaseIterable {
    /// As in RFC 9111: a fresh response is returned, a stale one is validated, and a missing one is fetched.
    ///
    /// Its raw value is `default`.
    case standard = "default"
    /// A stored response is validated before it is returned, unless it is fresh, `immutable` and from https (RFC 8246).
    case revalidate
    /// The response is always fetched; caches on the way are asked to forward the request as well.
    case reload
    /// Returns a stored response that needs no validation, or status 504 if there is none; the network is not used.
    ///
    /// Its raw value is `only-if-cached`.
    case onlyIfCached = "only-if-cached"
    /// Returns the stored response, even if it is stale; a missing response is fetched.
    ///
    /// Its raw value is `cache-first`.
    case cacheFirst = "cache-first"
    /// Returns the stored response, even if it is stale, or status 504 if there is none; the network is not used.
    case offline
}
