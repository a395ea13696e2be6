// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// A request for a URL, with its conditions.
package struct FetchOrder: Sendable, Equatable {
    /// The responses that may be returned from the cache.
    package enum Mode: String, Sendable, CaseIterable {
        /// Fresh responses, as defined in RFC 9111.
        case standard = "default"
        /// Responses that the server confirms.
        case revalidate
        /// None.
        case reload
        /// Fresh responses; the server is not queried.
        case onlyIfCached = "only-if-cached"
        /// Any stored response; if there is none, the server is queried.
        case cacheFirst = "cache-first"
        /// Any stored response; the server is not queried.
        case offline
    }

    package var url: String
    package var mode = Mode.standard
    /// The fields of the request.
    package var fields: [FieldLine] = []
    /// How long the response is fresh, regardless of the server.
    package var timeToLive: Duration?
    /// How long after that it may still be used if the server can't be reached.
    package var staleIfError: Duration?
    /// The SHA-256 of the body, as "sha256:" and 64 hexadecimal digits.
    package var digest: String?
    /// The maximum number of bytes of the body.
    package var maximumSize: Int64?
    /// The time limit for the whole request.
    package var timeLimit: Duration?
    /// The maximum number of retries; nil for the default.
    package var retries: Int?
    /// Tags by which the stored response can be removed.
    package var tags: [String] = []

    package init(_ url: String) {
        self.url = url
    }
}

/// The trusted authorities and the client certificate: files in PEM.
package struct FetchSecurity: Sendable, Equatable {
    /// The authorities; nil for the system's default.
    package var authorityFile: String?
    package var certificateFile: String?
    /// The file of the certificate's key; nil if the key is in the certificate's file.
    package var certificateKeyFile: String?
}

/// A line of a head.
package struct FieldLine: Sendable, Equatable, Encodable {
    package var name: String
    package var value: String

    package init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// The progress of a download.
package struct DownloadProgress: Sendable, Equatable {
    /// The bytes of the body received so far, including those of an earlier attempt.
    package var received: Int64
    /// The length of the whole body; nil if the server has not reported it.
    package var total: Int64?
    /// The downloading process, if this one waits for it.
    package var process: Int32?

    package init(received: Int64, total: Int64? = nil, process: Int32? = nil) {
        self.received = received
        self.total = total
        self.process = process
    }
}

/// A response, from the cache or from the server.
package struct Fetched: Sendable, Equatable {
    package var status: Int
    package var fields: [FieldLine]
    /// The final URL after redirects, without credentials.
    package var url: String
    /// The length of the body.
    package var length: Int64
    /// The SHA-256 of the body, in 64 hexadecimal digits; nil if unknown.
    package var digest: String?
    /// The time since the server generated the response, if known.
    package var age: Duration?
    /// The handling by the cache, as a member of the field Cache-Status (RFC 9211).
    package var cacheStatus: String
    /// The time in the field Last-Modified (RFC 9110, 8.8.2), in seconds since 1970; nil if it is missing or not a date.
    package var modified: Int64?
    /// The stored part of an error's body; the body of a success is at its destination.
    package var rejection = Data()

    package init(
        status: Int,
        fields: [FieldLine],
        url: String,
        length: Int64,
        digest: String?,
        age: Duration?,
        cacheStatus: String
    ) {
        self.status = status
        self.fields = fields
        self.url = url
        self.length = length
        self.digest = digest
        self.age = age
        self.cacheStatus = cacheStatus
    }
}
