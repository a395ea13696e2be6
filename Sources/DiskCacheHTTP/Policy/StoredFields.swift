// SPDX-License-Identifier: Apache-2.0

import Transport

/// Which header fields of a response are stored.
///
/// All fields are stored, known or unknown (RFC 9111, section 3.1), except fields that apply to one connection (RFC 9110,
/// section 7.6.1) and fields that carry credentials.
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

    /// The fields of ``secret`` that only the caller who fetches the response gets; they are not stored.
    package static let ofCaller: Set<String> = ["set-cookie", "set-cookie2"]

    /// Fields that describe the stored bytes; a 304 does not change them (RFC 9111, section 3.2).
    package static let ofBody: Set<String> = ["content-encoding", "content-length", "content-range"]

    /// Returns the fields that are stored, plus those of ``ofCaller``.
    package static func of(_ fields: HTTPFields) -> HTTPFields {
        var kept = fields
        kept.remove(fields.members(of: "Connection"))
        kept.remove(ofConnection.union(secret).subtracting(ofCaller))
        return kept
    }

    /// Returns the stored fields, updated with the fields of a newer response.
    ///
    /// A weak entity tag stays weak: the strong one of a 304 may be that of another coding (RFC 9111, section 4.3.4).
    package static func updated(_ stored: HTTPFields, with newer: HTTPFields) -> HTTPFields {
        var changes = of(newer)
        changes.remove(ofBody)
        if let old = stored.first("ETag").flatMap(EntityTag.init), old.isWeak,
            let new = newer.first("ETag").flatMap(EntityTag.init), new.matchesWeakly(old)
        {
            changes.remove(["ETag"])
        }
        var fields = stored
        fields.remove(changes.lines.map(\.name))
        // The Age of the old response does not apply to the new one.
        fields.remove(["Age"])
        for line in changes.lines { fields.add(line.name, line.value) }
        return fields
    }
}
