// SPDX-License-Identifier: Apache-2.0

extension CacheConfiguration {
    /// Which servers a cache shares its values through, and how; as `config.json` says it under the key
    /// `remote`.
    ///
    /// ```swift
    /// var remote = CacheConfiguration.Remote(servers: ["http://cache-1:8080/", "http://cache-2:8080/"])
    /// remote.namespace = "team"
    /// let cache = try SharedCache(at: "/var/cache/thumbs", remote: remote)      // import DiskCacheRemote
    /// ```
    ///
    /// All who use the same servers must give them the same URLs, and have the same path and namespace: these
    /// choose the server of a value, and its place there.
    public struct Remote: Sendable, Equatable {
        /// How the servers are used.
        public enum Mode: String, Sendable {
            /// Nothing.
            case off
            /// They are asked, and told nothing.
            case read
            /// They are asked for values, and get the values and removals of this machine.
            case readWrite
        }

        /// How a server has entries.
        public enum Format: String, Sendable {
            /// As Bazel's remote cache has them: contents by their digests, and ActionResults (REAPI) that
            /// name them, in which small values are inlined.
            case action
            /// Record and value in one body, at one place.
            case plain
        }

        /// One server.
        public struct Server: Sendable, Equatable {
            /// Its protocol.
            public enum Kind: String, Sendable {
                /// GET, PUT and DELETE: nginx, bazel-remote, and the like.
                case http
                /// The same, with requests signed as Amazon wants it (AWS Signature Version 4).
                case s3
                /// Redis, and what speaks its protocol.
                case redis
            }

            /// `http:`, `https:`, `redis:`, `rediss:` (over TLS) or `redis+unix:`; without user and password, which
            /// belong in the file of credentials.
            public var url: String
            /// How much of the values it gets, beside the weights of the others of its level.
            public var weight: Double
            /// nil: what the URL's scheme says.
            public var kind: Kind?
            /// For S3; nil: "us-east-1".
            public var region: String?

            /// A server; it gets as much as others unless it has another weight.
            public init(_ url: String, weight: Double = 1, kind: Kind? = nil, region: String? = nil) {
                self.url = url
                self.weight = weight
                self.kind = kind
                self.region = region
            }
        }

        /// Groups of servers: each value has one server in each, and is looked for in one group after
        /// another.
        public var levels: [[Server]]
        /// Default: they are asked and told.
        public var mode = Mode.readWrite
        /// Where a server has what, below its URL: `{namespace}`; `{kind}`, "cas" or "ac"; `{digest}`, 64
        /// hexadecimal digits.
        ///
        /// Not for Redis. Default: `{namespace}/{kind}/{digest}`.
        public var path = CacheConfiguration.Remote.defaultPath
        /// Default: as Bazel's remote cache.
        ///
        /// Not for Redis.
        public var format = Format.action
        /// Keeps the keys of one group of users apart from those of others: at most 64 letters, digits, `-`,
        /// `_` and `.`, of ASCII.
        ///
        /// Default: empty, none.
        public var namespace = ""
        /// How long a call may take longer because of the servers: 1 ms to 1 h.
        ///
        /// Default: 250 ms.
        public var limit: Duration = .milliseconds(250)
        /// Bytes of the shortest and the longest value that goes there.
        ///
        /// Default: 0 and 16 MiB.
        public var minimumSize: Int64 = 0
        /// See ``minimumSize``.
        public var maximumSize: Int64 = 16 << 20
        /// Only values with one of these tags are sent.
        ///
        /// Default: empty, everything does.
        public var tags: [String] = []
        /// A file (PEM) with the authorities that vouch for servers of `https:` and `rediss:`.
        ///
        /// Default: nil, what `SSL_CERT_FILE` names, or else the system's.
        public var authorityFile: String?
        /// A file (PEM) with our own certificate, for servers that ask for one.
        ///
        /// Default: nil, none.
        public var certificateFile: String?
        /// A file (PEM) with the key of ``certificateFile``, without a password.
        ///
        /// Default: nil, it is in the same file.
        public var certificateKeyFile: String?
        /// A file with lines `host = user:password`, or `host = key:secret` for S3, that nobody else can read
        /// or write.
        ///
        /// Default: nil, what the environment's `DISKCACHE_REMOTE_CREDENTIALS` has, in such lines.
        public var credentials: String?

        /// Where a server has what, unless it is said otherwise.
        public static let defaultPath = "{namespace}/{kind}/{digest}"

        /// Groups of servers, the ones to ask first in front.
        public init(levels: [[Server]]) {
            self.levels = levels
        }

        /// One group of servers, by their URLs.
        public init(servers: [String]) {
            levels = servers.isEmpty ? [] : [servers.map { Server($0) }]
        }

        /// Whether any server is used.
        public var isActive: Bool { mode != .off && levels.contains { !$0.isEmpty } }
    }
}
