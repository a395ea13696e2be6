// SPDX-License-Identifier: Apache-2.0

import Transport

/// The header fields of a response that are stored.
///
/// All fields, known or unknown (RFC 9111, section 3.1), except those of one connection (RFC 9110, section 7.6.1) and those
/// that carry credentials.
package enum StoredFields {
    /// Fields that apply to one connection, whether Connection lists them or not.
    package static let ofConnection: Set<String> = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// Fields that carry credentials.
    package static let secret: Set<String> = [
        "authentication-info", "authorization", "cookie", "set-cookie", "set-cookie2",
    ]

    /// The fields of ``secret`` that the caller who fetched the response gets, and nobody who gets the stored one.
    package static let ofCaller: Set<String> = ["set-cookie", "set-cookie2"]

    /// Fields that describe the stored bytes, which a 304 does not change (RFC 9111, section 3.2).
    package static let ofBody: Set<String> = ["content-encoding", "content-length", "content-range"]

    /// Returns the fields of a response that are stored, and those of ``ofCaller``.
    package static func of(_ fields: HTTPFields) -> HTTPFields {
        var kept = fields
        kept.remove(fields.members(of: "Connection"))
        kept.remove(ofConnection.union(secret).subtracting(ofCaller))
        return kept
    }

    /// Returns the stored fields, with those of a newer response replacing fields of the same name.
    package static func updated(_ stored: HTTPFields, with newer: HTTPFields) -> HTTPFields {
        var changes = of(newer)
        changes.remove(ofBody)
        var fields = stored
        fields.remove(changes.lines.map(\.name))
        // The age of the old response says nothing about the new one.
        fields.remove(["Age"])
        for line in changes.lines { fields.add(line.name, line.value) }
        return fields
    }
}
