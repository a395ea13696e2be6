// SPDX-License-Identifier: Apache-2.0

extension CacheActivity {
    /// This process's statistics about the remote servers that share its values.
    public struct Remote: Sendable, Equatable {
        /// The statistics about one server.
        public struct Server: Sendable, Equatable {
            /// The server's URL, without user, password and query.
            public var name: String
            /// The state of the circuit breaker: "closed" (the server is asked), "open" (it is not asked for a while),
            /// "probing" (one request tests it).
            public var breaker: String
            /// The number of answered requests.
            public var answers = 0
            /// The times within which half of the requests, 99 of 100, and all were answered; nil if none was answered.
            public var latency: Latency?

            /// Creates the statistics about a server that has not answered any request.
            public init(name: String, breaker: String) {
                self.name = name
                self.breaker = breaker
            }
        }

        /// Response times, each accurate to within a quarter.
        public struct Latency: Sendable, Equatable {
            /// Half of the answers took no longer than this.
            public var median: Duration
            /// 99 of 100 answers took no longer than this.
            public var percentile99: Duration
            /// No answer took longer than this.
            public var longest: Duration

            /// Creates a latency from these times.
            public init(median: Duration, percentile99: Duration, longest: Duration) {
                self.median = median
                self.percentile99 = percentile99
                self.longest = longest
            }
        }

        /// The servers, in the order of the configuration.
        public var servers: [Server] = []
        /// The number of keys with changes, by any process on this machine, that must still be sent to the servers.
        public var waiting = 0

        /// Creates empty statistics.
        public init() {}
    }
}

extension CacheDirectory {
    /// This process's statistics about the remote servers that share its values; nil if there are no servers.
    public var remote: CacheActivity.Remote? { cache.remote?.tier.activity }
}
