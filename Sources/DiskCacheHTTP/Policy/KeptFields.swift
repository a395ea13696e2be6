// SPDX-License-Identifier: Apache-2.0

/// Which header fields of a response are kept.
///
/// All of them, known or not (RFC 9111, section 3.1), but for those of one connection (RFC 9110, section
/// 7.6.1) and those that carry credentials. Cookies that a server sets are encrypted.
package enum KeptFields {
    /// What is about one connection, whether Connection names it or not.
    package static let ofConnection: Set<String> = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// What carries credentials.
    package static let secret: Set<String> = [
        "authentication-info", "authorization", "cookie", "set-cookie", "set-cookie2",
    ]

    /// Those of them that are kept, where nobody but the user can read them.
    package static let encrypted: Set<String> = ["set-cookie", "set-cookie2"]

    /// What describes the bytes that are stored, which a 304 doesn't change (RFC 9111, section 3.2).
    package static let ofBody: Set<String> = ["content-encoding", "content-length", "content-range"]

    /// The fields of a response that are kept.
    package static func of(_ fields: HTTPFields) -> HTTPFields {
        var kept = fields
        kept.remove(fields.members(of: "Connection"))
        kept.remove(ofConnection.union(secret).subtracting(encrypted))
        return kept
    }

    /// The stored fields with those of a newer response in their place, by name.
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
