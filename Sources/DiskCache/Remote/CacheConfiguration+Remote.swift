// SPDX-License-Identifier: Apache-2.0

extension CacheConfiguration {
    /// The remote servers through which a cache shares its values, and how they are used; `config.json` has the same
    /// settings under the key `remote`.
    ///
    /// ```swift
    /// var remote = CacheConfiguration.Remote(servers: ["http://cache-1:8080/", "http://cache-2:8080/"])
    /// remote.namespace = "team"
    /// let cache = try SharedCache(at: "/var/cache/thumbs", remote: remote)      // import DiskCacheRemote
    /// ```
    ///
    /// All users who share values must configure the same URLs, path and namespace: these determine the server of a value,
    /// and its path there.
    public struct Remote: Sendable, Equatable {
        /// How the servers are used.
        public enum Mode: String, Sendable {
            /// The servers are not used.
            case off
            /// Values are requested from the servers; nothing is sent.
            case read
            /// Values are requested from the servers, and this machine's values and removals are sent.
            case readWrite
        }

        /// The format of entries on a server.
        public enum Format: String, Sendable {
            /// As in Bazel's remote cache: contents under their digests, and ActionResults (REAPI) that refer to the
            /// contents or contain small ones.
            case action
            /// Record and value in one body, under one path.
            case plain
        }

        /// One server.
        public struct Server: Sendable, Equatable {
            /// A server's protocol.
            public enum Kind: String, Sendable {
                /// HTTP with GET, PUT and DELETE: nginx, bazel-remote, and the like.
                case http
                /// HTTP with requests signed for Amazon S3 (AWS Signature Version 4).
                case s3
                /// Redis, and other servers with its protocol.
                case redis
            }

            /// The URL: `http:`, `https:`, `redis:`, `rediss:` (over TLS) or `redis+unix:`; without user and password,
            /// which belong in the ``CacheConfiguration/Remote/credentials`` file.
            public var url: String
            /// The server's share of the values, relative to the weights of the other servers of its level.
            public var weight: Double
            /// The protocol; nil if the URL's scheme determines it.
            public var kind: Kind?
            /// The region, for S3; nil for "us-east-1".
            public var region: String?

            /// Creates a server; by default it gets the same share as the others.
            public init(_ url: String, weight: Double = 1, kind: Kind? = nil, region: String? = nil) {
                self.url = url
                self.weight = weight
                self.kind = kind
                self.region = region
            }
        }

        /// The groups of servers: each value belongs to one server of each group, and is looked up in one group after
        /// another.
        public var levels: [[Server]]
        /// How the servers are used.
        ///
        /// Default: reading and writing.
        public var mode = Mode.readWrite
        /// The template of an object's path below a server's URL, with the placeholders `{namespace}`, `{kind}` ("cas" or
        /// "ac") and `{digest}` (64 hexadecimal digits).
        ///
        /// Redis servers ignore it. Default: `{namespace}/{kind}/{digest}`.
        public var path = CacheConfiguration.Remote.defaultPath
        /// The format of entries.
        ///
        /// Redis servers ignore it. Default: as in Bazel's remote cache.
        public var format = Format.action
        /// A name that separates the keys of one group of users from the keys of others: at most 64 ASCII letters, digits,
        /// `-`, `_` and `.`, not beginning with `.`.
        ///
        /// Default: empty, no namespace.
        public var namespace = ""
        /// The maximum time that the servers may add to a call: 1 ms to 1 h.
        ///
        /// Default: 250 ms.
        public var limit: Duration = .milliseconds(250)
        /// The minimum size of values that are sent, in bytes.
        ///
        /// Default: 0.
        public var minimumSize: Int64 = 0
        /// The maximum size of values that are sent or received, in bytes.
        ///
        /// Default: 16 MiB.
        public var maximumSize: Int64 = 16 << 20
        /// The tags of values that are sent: a value needs at least one of them.
        ///
        /// Default: empty, all values are sent.
        public var tags: [String] = []
        /// A file (PEM) with the certificate authorities for servers of `https:` and `rediss:`.
        ///
        /// Default: nil, for the file that the environment variable `SSL_CERT_FILE` names, or else the system's
        /// authorities.
        public var authorityFile: String?
        /// A file (PEM) with the client certificate, for servers that require one.
        ///
        /// Default: nil, for no certificate.
        public var certificateFile: String?
        /// A file (PEM) with the private key of ``certificateFile``, without a password.
        ///
        /// Default: nil, if the key is in the same file.
        public var certificateKeyFile: String?
        /// A file with lines `host = user:password`, or `host = key:secret` for S3, that only its owner can read or write.
        ///
        /// Default: nil, for such lines in the environment variable `DISKCACHE_REMOTE_CREDENTIALS`.
        public var credentials: String?

        /// The default ``path``.
        public static let defaultPath = "{namespace}/{kind}/{digest}"

        /// Creates a configuration from groups of servers, in the order in which they are asked.
        public init(levels: [[Server]]) {
            self.levels = levels
        }

        /// Creates a configuration with one group of servers, by their URLs.
        public init(servers: [String]) {
            levels = servers.isEmpty ? [] : [servers.map { Server($0) }]
        }

        /// Whether any server is used.
        public var isActive: Bool { mode != .off && levels.contains { !$0.isEmpty } }
    }
}
