// SPDX-License-Identifier: Apache-2.0

/// The fields of requests that hold no credentials.
///
/// Any other field may: `X-Api-Key`, `Private-Token`, `Job-Token` and the like are without number, and no word in a
/// name tells them all. So this list decides three questions at once: which fields a redirect takes along to another
/// server, which do not separate responses in a cache, and which may be written down as they are.
package enum HarmlessFields {
    /// Whether the field with this name, in lower case, is one of them.
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
