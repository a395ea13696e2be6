// SPDX-License-Identifier: Apache-2.0

import Platform

/// What holds for all requests of an ``HTTPCache``.
public struct HTTPCacheOptions: Sendable, Equatable {
    /// Requests to one server at once; further ones wait.
    ///
    /// Default: 8.
    public var requestsPerHost = 8
    /// Requests at once in all.
    ///
    /// Servers that are slow hold up no other: one of which no request is under way may have one beyond that, up to twice
    /// as many in all. Default: 32.
    public var requests = 32
    /// Until a connection is there.
    ///
    /// Default: 10 s.
    public var connectLimit = Duration.seconds(10)
    /// How long there may be not a byte.
    ///
    /// In twice that time as many bytes have to come as make 5 a second. Default: 30 s.
    public var stallLimit = Duration.seconds(30)
    /// How long a stale response is kept, to be renewed by its validators, or to be used when there is no other.
    ///
    /// Default: 30 days. What takes the directory over its limits goes earlier.
    public var keepsStale = Duration.seconds(30 * 86_400)
    /// How long a stale response may take the place of an error at most, however much it allows.
    ///
    /// Default: 7 days.
    public var mostStaleIfError = Duration.seconds(7 * 86_400)
    /// The longest pause that a server may ask for before it is asked again (Retry-After); with a longer one
    /// its answer is the answer.
    ///
    /// Default: 30 s.
    public var longestRetryPause = Duration.seconds(30)
    /// Whether responses that say nothing of it are fresh for a tenth of the time since they were last
    /// changed, a day at most (RFC 9111, section 4.2.2).
    ///
    /// Default: true.
    public var usesHeuristics = true
    /// Whether keys have a digest in the place of a URL's query, which may hold secrets.
    ///
    /// Default: false.
    public var hidesQueries = false
    /// A file (PEM) with the authorities that vouch for servers and proxies.
    ///
    /// Default: nil, what `SSL_CERT_FILE` names, or else the system's.
    public var authorityFile: String?
    /// A file (PEM) with the caller's own certificate, for servers that ask for one.
    ///
    /// It says who asks: what has come with one is stored apart, for those who have the same. It is read when the cache is
    /// made. Default: nil, none.
    public var certificateFile: String?
    /// A file (PEM) with the key of ``certificateFile``, without a password.
    ///
    /// Default: nil, it is in the same file.
    public var certificateKeyFile: String?

    /// The file with the key by which the cookies that responses set (`Set-Cookie`) are encrypted when they are stored.
    ///
    /// It has 32 bytes, and is made, readable for this user alone, when it is first needed. Keep it outside of the
    /// cache's directory: who has only one of them reads no cookie. Without it, and for other users, a stored
    /// response has no such field.
    ///
    /// Default: `${XDG_DATA_HOME:-~/.local/share}/diskcache/key`; nil where neither is an absolute path.
    public var keyFile = userKeyFile { CurrentProcess.environmentBytes($0) }

    /// The defaults.
    public init() {}

    /// - Parameter environment: the bytes of an environment variable; nil where it is not set.
    static func userKeyFile(_ environment: (String) -> [UInt8]?) -> String? {
        for (variable, place) in [("XDG_DATA_HOME", ""), ("HOME", "/.local/share")] {
            guard let bytes = environment(variable), let base = String(validating: bytes, as: UTF8.self),
                base.hasPrefix("/")
            else { continue }
            return "\(base)\(place)/diskcache/key"
        }
        return nil
    }
}
