// SPDX-License-Identifier: Apache-2.0

extension CacheActivity {
    /// What this process has seen of the servers that it shares values with.
    public struct Remote: Sendable, Equatable {
        /// One of the servers.
        public struct Server: Sendable, Equatable {
            /// Its URL, without user, password and query.
            public var name: String
            /// Whether it is asked: "closed" (yes), "open" (not for a moment), "probing" (one request finds
            /// out).
            public var breaker: String
            /// Requests that were answered.
            public var answers = 0
            /// The time within which half of them, 99 of 100 and all were answered; nil if there were none.
            public var latency: Latency?

            /// A server without any request.
            public init(name: String, breaker: String) {
                self.name = name
                self.breaker = breaker
            }
        }

        /// Times of answers, each to within a quarter.
        public struct Latency: Sendable, Equatable {
            /// Half of the answers took no longer.
            public var median: Duration
            /// 99 of 100 took no longer.
            public var percentile99: Duration
            /// None took longer.
            public var longest: Duration

            /// These times.
            public init(median: Duration, percentile99: Duration, longest: Duration) {
                self.median = median
                self.percentile99 = percentile99
                self.longest = longest
            }
        }

        /// In the order of the configuration.
        public var servers: [Server] = []
        /// Keys that the servers have still to be told of, by any process.
        public var waiting = 0

        /// Nothing yet.
        public init() {}
    }
}

extension CacheDirectory {
    /// What this process has seen of the servers that it shares values with; nil if there are none.
    public var remote: CacheActivity.Remote? { cache.remote?.tier.activity }
}
