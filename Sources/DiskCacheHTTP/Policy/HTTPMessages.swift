// SPDX-License-Identifier: Apache-2.0

import Transport

/// The head of a request.
package struct HTTPRequest: Sendable, Equatable {
    /// In its case: methods differ by it.
    package var method: String
    package var url: HTTPURL
    package var fields: HTTPFields
    /// The names, in lower case, of fields beyond ``HarmlessFields`` that hold no credentials, as the caller says.
    package var plainFields: Set<String> = []

    package init(_ method: String = "GET", _ url: HTTPURL, _ fields: HTTPFields = [:]) {
        self.method = method
        self.url = url
        self.fields = fields
    }

    /// Whether a field of this name, in lower case, may hold credentials.
    ///
    /// It goes to no other server then, separates responses, and is written down only sealed.
    package func isSecret(_ name: String) -> Bool {
        !HarmlessFields.contains(name) && !plainFields.contains(name)
    }

    /// Its fields that may hold credentials, with their names in lower case and in the order of these.
    package var secrets: [HTTPFields.Line] {
        fields.lines.map { HTTPFields.Line(name: HTTPText.lowercased($0.name), value: $0.value) }
            .filter { isSecret($0.name) }.sorted { $0.name < $1.name }
    }

    /// Whether it may change nothing at the origin (RFC 9110, section 9.2.1).
    ///
    /// A method that is not known may.
    package var isSafe: Bool { ["GET", "HEAD", "OPTIONS", "TRACE"].contains(method) }

    /// Whether it asks for a part, or on a condition.
    package var isConditional: Bool {
        fields.lines.contains { Self.conditions.contains(HTTPText.lowercased($0.name)) }
    }

    private static let conditions: Set<String> = [
        "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
    ]

    /// Whether nothing stored may be used before the origin has said that it is right (RFC 9111, sections 5.2.1.4
    /// and 5.4).
    package var forbidsUnvalidatedUse: Bool {
        fields.contains("Cache-Control") ? CacheControl(fields).contains("no-cache") : fields.hasPragmaNoCache
    }
}

/// The head of a response.
package struct HTTPResponse: Sendable, Equatable {
    package var status: Int
    package var fields: HTTPFields

    package init(_ status: Int = 200, _ fields: HTTPFields = [:]) {
        self.status = status
        self.fields = fields
    }
}

/// What a cache keeps of a response to GET, but for its bytes.
package struct StoredResponse: Sendable, Equatable {
    /// What of the body is there.
    package enum Body: Sendable, Equatable {
        /// All of it, of this length in bytes.
        case complete(Int)
        /// These bytes, of so many if that is known.
        case part(Range<Int>, of: Int?)
    }

    package var status: Int
    /// Only fields that are kept; see ``KeptFields``.
    package var fields: HTTPFields
    /// When the request was sent.
    package var requested: HTTPDate
    /// When the response came.
    package var received: HTTPDate
    /// What chose this response among the variants.
    package var variant: Variant
    package var body: Body

    package init(
        status: Int = 200,
        fields: HTTPFields,
        requested: HTTPDate,
        received: HTTPDate,
        variant: Variant = Variant(),
        body: Body
    ) {
        self.status = status
        self.fields = fields
        self.requested = requested
        self.received = received
        self.variant = variant
        self.body = body
    }

    /// When the origin made it; when it came, if that is not said (RFC 9110, section 6.6.1).
    package var date: HTTPDate {
        fields.first("Date").flatMap { HTTPDate($0, now: received) } ?? received
    }

    /// The directives of its Cache-Control.
    package var control: CacheControl { CacheControl(fields) }
}
