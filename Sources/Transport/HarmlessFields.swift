// SPDX-License-Identifier: Apache-2.0

/// The names of request fields that hold no credentials.
///
/// Any other field may hold credentials: fields such as `X-Api-Key`, `Private-Token` and `Job-Token` can't be enumerated
/// or recognized by their names. So this list determines which fields are sent to another server after a redirect, which
/// do not separate responses in a cache, and which may be stored in the clear.
package enum HarmlessFields {
    /// Returns whether the list contains this name, which must be given in lower case.
    package static func contains(_ name: String) -> Bool { names.contains(name) }

    private static let names: Set<String> = [
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control", "connection",
        "content-encoding", "content-language", "content-length", "content-type", "date", "dnt", "expect",
        "host",
        "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "max-forwards",
        "pragma",
        "prefer", "priority", "range", "save-data", "sec-gpc", "te", "traceparent", "tracestate",
        "transfer-encoding",
        "upgrade-insecure-requests", "user-agent", "via", "x-correlation-id", "x-request-id",
        "x-requested-with",
    ]
}
