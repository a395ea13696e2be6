// SPDX-License-Identifier: Apache-2.0

/// Options for all requests of an ``HTTPCache``.
public struct HTTPCacheOptions: Sendable, Equatable {
    /// The maximum number of concurrent requests to one server; further requests wait.
    ///
    /// Default: 8.
    public var requestsPerHost = 8
    /// The maximum number of concurrent requests in total.
    ///
    /// Slow servers do not delay requests to others: a server without a request in progress may get one beyond this limit,
    /// up to twice the limit in total. Default: 32.
    public var requests = 32
    /// The time limit for establishing a connection.
    ///
    /// Default: 10 s.
    public var connectLimit = Duration.seconds(10)
    /// The maximum time without receiving data.
    ///
    /// In addition, the average rate over twice this time must be at least 5 bytes a second. Default: 30 s.
    public var stallLimit = Duration.seconds(30)
    /// How long a stale response is kept, for revalidation or for use if no other is available.
    ///
    /// Default: 30 days. Eviction may remove it earlier.
    public var keepsStale = Duration.seconds(30 * 86_400)
    /// The maximum time for which a stale response may be used instead of an error, even if the response allows more.
    ///
    /// Default: 7 days.
    public var mostStaleIfError = Duration.seconds(7 * 86_400)
    /// The longest pause before a retry that a server may ask for (Retry-After).
    ///
    /// If the server asks for a longer pause, its response is returned instead.
    ///
    /// Default: 30 s.
    public var longestRetryPause = Duration.seconds(30)
    /// Whether responses that specify no lifetime are fresh for a tenth of the time since their last modification, at most a
    /// day (RFC 9111, section 4.2.2).
    ///
    /// Default: true.
    public var usesHeuristics = true
    /// Whether keys contain a digest of a URL's query instead of the query, which may hold secrets.
    ///
    /// Default: false.
    public var hidesQueries = false
    /// A PEM file with the certificate authorities for servers and proxies.
    ///
    /// Default: nil, for the file that the environment variable `SSL_CERT_FILE` names, or else the system's authorities.
    public var authorityFile: String?
    /// A PEM file with the client certificate, for servers that request one.
    ///
    /// Responses fetched with a client certificate are stored separately, and returned only with the same certificate. The
    /// file is read when the cache is created. Default: nil.
    public var certificateFile: String?
    /// A PEM file with the key of ``certificateFile``, without a password.
    ///
    /// Default: nil, if the key is in the same file.
    public var certificateKeyFile: String?

    /// Creates the default options.
    public init() {}
}
