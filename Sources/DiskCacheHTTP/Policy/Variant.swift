// SPDX-License-Identifier: Apache-2.0

/// What a response's Vary says (RFC 9111, section 4.1): which fields of a request choose among the variants.
package enum VaryRule: Sendable, Hashable {
    /// `*`: no request matches.
    case nothingMatches
    /// These names, in lower case, sorted, each once.
    case fields([String])

    package init(_ fields: HTTPFields) {
        let names = fields.members(of: "Vary").map(HTTPText.lowercased)
        self = names.contains("*") ? .nothingMatches : .fields(Set(names).sorted())
    }
}

/// The fields of the request by which a response was chosen, with their values in normal form.
///
/// The value of a field that may hold credentials is sealed by who calls: with a keyed digest, never in the
/// clear.
package struct Variant: Sendable, Hashable {
    /// Stands among the names for all fields of the request that may hold credentials; no field has this name.
    package static let credentials = "@credentials"

    /// By name in lower case; a field that was not sent has nil, which is another value than an empty one.
    package let values: [String: String?]

    /// Of a response that doesn't vary.
    package init() { values = [:] }

    /// What `request` says in these fields.
    package init(of request: HTTPRequest, fields: [String], seal: (String) -> String) {
        var values: [String: String?] = [:]
        for name in fields {
            if name == Self.credentials {
                let secrets = request.secrets
                // The length keeps values apart whatever is in them.
                let text = secrets.map { "\($0.name)=\($0.value.utf8.count):\($0.value)\n" }.joined()
                values.updateValue(secrets.isEmpty ? nil : seal(text), forKey: name)
                continue
            }
            let value = request.fields.combined(name).map { Self.normalized($0, of: name) }
            values.updateValue(request.isSecret(name) ? value.map(seal) : value, forKey: name)
        }
        self.values = values
    }

    /// A text that differs whenever the variant does; empty if there is nothing to choose by.
    package var text: String {
        values.sorted { $0.key < $1.key }.map { name, value in
            // The length keeps values apart whatever is in them.
            value.map { "\(name)=\($0.utf8.count):\($0)\n" } ?? "\(name)\n"
        }.joined()
    }

    /// What means the same becomes the same: white space and lines; for preferences order as well, and case
    /// where it means nothing.
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

/// The first of two steps to a stored response: which fields choose, newest first; the variant's text is the
/// second.
package struct VariantIndex: Sendable, Equatable {
    /// So many at most, since each costs a lookup; a site has one as a rule, and rarely a second one.
    package static let mostRules = 8

    /// Each list of names once.
    package private(set) var rules: [[String]] = []

    package init() {}

    /// Takes up what chose a response that is stored now.
    package mutating func add(_ variant: Variant) {
        let names = variant.values.keys.sorted()
        rules.removeAll { $0 == names }
        rules.insert(names, at: 0)
        rules.removeLast(max(0, rules.count - Self.mostRules))
    }

    /// The variants that may answer, those first whose fields were stored last.
    package func variants(for request: HTTPRequest, seal: (String) -> String) -> [Variant] {
        rules.map { Variant(of: request, fields: $0, seal: seal) }
    }
}

extension HTTPCachePolicy {
    /// What chooses a response to this request; nil if nothing may (`Vary: *`).
    package func variant(
        of response: HTTPFields,
        to request: HTTPRequest,
        seal: (String) -> String
    ) -> Variant? {
        guard case .fields(var names) = VaryRule(response) else { return nil }
        if separatesCredentials { names = Set(names + [Variant.credentials]).sorted() }
        return Variant(of: request, fields: names, seal: seal)
    }

    /// Whether the stored response was chosen by what this request says.
    package func matches(_ stored: StoredResponse, _ request: HTTPRequest, seal: (String) -> String) -> Bool {
        guard case .fields = VaryRule(stored.fields) else { return false }
        if separatesCredentials, !stored.variant.values.keys.contains(Variant.credentials) { return false }
        return Variant(of: request, fields: stored.variant.values.keys.sorted(), seal: seal) == stored.variant
    }

    /// Of those that match: one with Vary before those without, then the newest by Date (section 4.1).
    package func choice(
        among candidates: [StoredResponse],
        for request: HTTPRequest,
        seal: (String) -> String
    ) -> StoredResponse? {
        candidates.filter { matches($0, request, seal: seal) }.max { left, right in
            let varies = (left.fields.contains("Vary"), right.fields.contains("Vary"))
            return varies.0 == varies.1 ? left.date < right.date : varies.1
        }
    }
}
