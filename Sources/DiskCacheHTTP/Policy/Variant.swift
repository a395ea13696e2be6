// SPDX-License-Identifier: Apache-2.0

import Transport

/// The Vary of a response (RFC 9111, section 4.1): the request fields that select among the variants.
package enum VaryRule: Sendable, Hashable {
    /// `*`: no request matches.
    case nothingMatches
    /// Field names in lower case, sorted, without duplicates.
    case fields([String])

    package init(_ fields: HTTPFields) {
        let names = fields.members(of: "Vary").map(HTTPText.lowercased)
        self = names.contains("*") ? .nothingMatches : .fields(Set(names).sorted())
    }
}

/// The request fields that selected a response, with normalized values.
///
/// The value of a field that may hold credentials is replaced by a keyed digest, which the caller supplies as `hasher`.
package struct Variant: Sendable, Hashable {
    /// Represents all fields of the request that may hold credentials; no field has this name.
    package static let credentials = "@credentials"

    /// The values by field name in lower case; nil for an absent field, which differs from an empty value.
    package let values: [String: String?]

    /// Creates the variant of a response that does not vary.
    package init() { values = [:] }

    /// Creates the variant that the given fields of `request` select.
    package init(of request: HTTPRequest, fields: [String], hasher: (String) -> String) {
        var values: [String: String?] = [:]
        for name in fields {
            if name == Self.credentials {
                let secrets = request.secrets
                // The length keeps values distinct, whatever they contain.
                let text = secrets.map { "\($0.name)=\($0.value.utf8.count):\($0.value)\n" }.joined()
                values.updateValue(secrets.isEmpty ? nil : hasher(text), forKey: name)
                continue
            }
            let value = request.fields.combined(name).map { Self.normalized($0, of: name) }
            values.updateValue(request.isSecret(name) ? value.map(hasher) : value, forKey: name)
        }
        self.values = values
    }

    /// A text that is different for each variant; empty if no field selects.
    package var text: String {
        values.sorted { $0.key < $1.key }.map { name, value in
            // The length keeps values distinct, whatever they contain.
            value.map { "\(name)=\($0.utf8.count):\($0)\n" } ?? "\(name)\n"
        }.joined()
    }

    /// Returns the same text for equivalent values: normalizes white space and field lines, and for preferences also the
    /// order, and the case if it is insignificant.
    private static func normalized(_ value: String, of name: String) -> String {
        let members = HTTPText.members(value)
        switch name {
        case "accept-encoding", "accept-language", "accept-charset":
            return members.map { HTTPText.lowercased($0).filter { $0 != " " && $0 != "\t" } }.sorted()
                .joined(separator: ", ")
        case "accept": return members.sorted().joined(separator: ", ")
        default: return members.joined(separator: ", ")
        }
    }
}

/// The first of two steps to a stored response: the fields that select it, newest first.
///
/// The text of the variant is the second step.
package struct VariantIndex: Sendable, Equatable {
    /// The maximum number of rules, since each costs a lookup; a site usually has one, and rarely a second.
    package static let mostRules = 8

    /// Lists of field names, newest first, without duplicates.
    package private(set) var rules: [[String]] = []

    package init() {}

    /// Records the fields that select a response that is being stored.
    package mutating func add(_ variant: Variant) {
        let names = variant.values.keys.sorted()
        rules.removeAll { $0 == names }
        rules.insert(names, at: 0)
        rules.removeLast(max(0, rules.count - Self.mostRules))
    }

    /// Returns the variants that may match `request`, starting with the most recently stored list of fields.
    package func variants(for request: HTTPRequest, hasher: (String) -> String) -> [Variant] {
        rules.map { Variant(of: request, fields: $0, hasher: hasher) }
    }
}
