// SPDX-License-Identifier: Apache-2.0

import Transport

/// The Vary field of a response (RFC 9111, section 4.1): which request fields select among the variants.
package enum VaryRule: Sendable, Hashable {
    /// `*`: no later request matches the response.
    case nothingMatches
    /// The field names in lower case, sorted, without duplicates.
    case fields([String])

    package init(_ fields: HTTPFields) {
        let names = fields.members(of: "Vary").map(HTTPText.lowercased)
        self = names.contains("*") ? .nothingMatches : .fields(Set(names).sorted())
    }
}

/// The request fields that selected a response, with normalized values.
///
/// A field that may hold credentials is represented by a keyed digest, which the caller's `hasher` computes.
package struct Variant: Sendable, Hashable {
    /// A name that represents all request fields that may hold credentials; no real field has this name.
    package static let credentials = "@credentials"

    /// The values by field name in lower case; nil means that the request lacks the field, which differs from an empty
    /// value.
    package let values: [String: String?]

    /// Creates the variant of a response that does not vary.
    package init() { values = [:] }

    /// Creates the variant that the given fields of `request` select.
    package init(of request: HTTPRequest, fields: [String], hasher: (String) -> String) {
        var values: [String: String?] = [:]
        for name in fields {
            if name == Self.credentials {
                let secrets = request.secrets
                // The length keeps different values distinct, even if they contain separators.
                let text = secrets.map { "\($0.name)=\($0.value.utf8.count):\($0.value)\n" }.joined()
                values.updateValue(secrets.isEmpty ? nil : hasher(text), forKey: name)
                continue
            }
            let value = request.fields.combined(name).map { Self.normalized($0, of: name) }
            values.updateValue(request.isSecret(name) ? value.map(hasher) : value, forKey: name)
        }
        self.values = values
    }

    /// A text that differs for each variant; empty if no field selects.
    package var text: String {
        values.sorted { $0.key < $1.key }.map { name, value in
            // The length keeps different values distinct, even if they contain separators.
            value.map { "\(name)=\($0.utf8.count):\($0)\n" } ?? "\(name)\n"
        }.joined()
    }

    /// Normalizes a field value, so that equivalent values become equal.
    ///
    /// Normalizes white space and the division into field lines; for Accept fields also the order, and the case if it is
    /// insignificant.
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

/// The lists of request fields that have selected stored responses of one URL, newest first.
///
/// A lookup first reads this index, and then looks for a response with the text of each variant.
package struct VariantIndex: Sendable, Equatable {
    /// The maximum number of lists, since each costs a lookup; a site usually has one, rarely two.
    package static let mostRules = 8

    /// Lists of field names, newest first, without duplicates.
    package private(set) var rules: [[String]] = []

    package init() {}

    /// Records the fields that select a response that is about to be stored.
    package mutating func add(_ variant: Variant) {
        let names = variant.values.keys.sorted()
        rules.removeAll { $0 == names }
        rules.insert(names, at: 0)
        rules.removeLast(max(0, rules.count - Self.mostRules))
    }

    /// Returns one variant of `request` for each list of fields, newest first.
    package func variants(for request: HTTPRequest, hasher: (String) -> String) -> [Variant] {
        rules.map { Variant(of: request, fields: $0, hasher: hasher) }
    }
}
