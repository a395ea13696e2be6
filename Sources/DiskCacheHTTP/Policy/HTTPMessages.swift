// SPDX-License-Identifier: Apache-2.0

package import Transport

/// The head of a request.
package struct HTTPRequest: Sendable, Equatable {
    /// The method; case-sensitive.
    package var method: String
    package var url: HTTPURL
    package var fields: HTTPFields
    /// The names, in lower case, of fields not in ``HarmlessFields`` that the caller declares free of credentials.
    package var plainFields: Set<String> = []

    package init(_ method: String = "GET", _ url: HTTPURL, _ fields: HTTPFields = [:]) {
        self.method = method
        self.url = url
        self.fields = fields
    }

    /// Returns whether a field of this name, in lower case, may hold credentials.
    ///
    /// Such a field is not sent to other servers, responses with different values of it are kept apart, and only a keyed
    /// digest of it is stored.
    package func isSecret(_ name: String) -> Bool {
        !HarmlessFields.contains(name) && !plainFields.contains(name)
    }

    /// The fields that may hold credentials, sorted by name, with names in lower case.
    package var secrets: [HeaderField] {
        fields.lines.map { HeaderField(HTTPText.lowercased($0.name), $0.value) }
            .filter { isSecret($0.name) }.sorted { $0.name < $1.name }
    }

    /// Whether the method is safe, so that it changes nothing at the origin server (RFC 9110, section 9.2.1).
    ///
    /// Unknown methods are not safe.
    package var isSafe: Bool { ["GET", "HEAD", "OPTIONS", "TRACE"].contains(method) }

    /// Whether the request has a range or a condition.
    package var isConditional: Bool {
        fields.lines.contains { Self.conditions.contains(HTTPText.lowercased($0.name)) }
    }

    private static let conditions: Set<String> = [
        "range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
    ]

    /// Whether the request accepts a stored response only after validation (RFC 9111, sections 5.2.1.4 and 5.4).
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
