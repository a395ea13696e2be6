// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// What is to be fetched, and on which terms.
package struct FetchOrder: Sendable, Equatable {
    /// What may be answered from the cache.
    package enum Mode: String, Sendable, CaseIterable {
        /// What is fresh, as RFC 9111 has it.
        case standard = "default"
        /// What the server confirms.
        case revalidate
        /// Nothing.
        case reload
        /// What is fresh; the server is not asked.
        case onlyIfCached = "only-if-cached"
        /// Whatever is stored; else the server is asked.
        case cacheFirst = "cache-first"
        /// Whatever is stored; the server is not asked.
        case offline
    }

    package var url: String
    package var mode = Mode.standard
    /// Fields of the request.
    package var fields: [FieldLine] = []
    /// For how long it is fresh, whatever the server says.
    package var timeToLive: Duration?
    /// How long after that it will still do if the server can't be asked.
    package var staleIfError: Duration?
    /// The SHA-256 of the body, as "sha256:" and 64 hexadecimal digits.
    package var digest: String?
    /// Bytes of the body.
    package var maximumSize: Int64?
    /// For all of it.
    package var timeLimit: Duration?
    /// How often it is tried again; nil: as usual.
    package var retries: Int?
    /// What the stored response can be removed by.
    package var tags: [String] = []

    package init(_ url: String) {
        self.url = url
    }
}

/// Whom to trust, and who one is: files in PEM.
package struct FetchSecurity: Sendable, Equatable {
    /// Authorities; nil: those that are usual here.
    package var authorityFile: String?
    package var certificateFile: String?
    /// nil: the key is in the certificate's file.
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

/// How far a download is.
package struct DownloadProgress: Sendable, Equatable {
    /// Bytes of the body that are there, also from an earlier attempt.
    package var received: Int64
    /// Bytes of the whole body; nil: the server has not said.
    package var total: Int64?
    /// The process that downloads, if this one waits for it.
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
    /// Where it came from in the end, without credentials.
    package var url: String
    /// Bytes of the body.
    package var length: Int64
    /// The SHA-256 of the body, in 64 hexadecimal digits; nil: unknown.
    package var digest: String?
    /// How long ago the server made it, as far as that is known.
    package var age: Duration?
    /// What was done, as a member of the field Cache-Status (RFC 9211).
    package var cacheStatus: String
    /// The time in the field Last-Modified (RFC 9110, 8.8.2), in seconds since 1970; nil: there is none, or it is no date.
    package var modified: Int64?
    /// The body of an error, as much of it as was kept; of a success it is where it was to go.
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
