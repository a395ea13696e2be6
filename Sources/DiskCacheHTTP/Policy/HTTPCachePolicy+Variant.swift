// SPDX-License-Identifier: Apache-2.0

extension HTTPCachePolicy {
    /// Returns the variant of a response to this request, or nil if no request may match it (`Vary: *`).
    package func variant(
        of response: HTTPFields,
        to request: HTTPRequest,
        hasher: (String) -> String
    ) -> Variant? {
        guard case .fields(var names) = VaryRule(response) else { return nil }
        if separatesCredentials { names = Set(names + [Variant.credentials]).sorted() }
        return Variant(of: request, fields: names, hasher: hasher)
    }

    /// Returns whether the fields of this request select the stored response.
    package func matches(_ stored: StoredResponse, _ request: HTTPRequest, hasher: (String) -> String) -> Bool
    {
        guard case .fields = VaryRule(stored.fields) else { return false }
        if separatesCredentials, !stored.variant.values.keys.contains(Variant.credentials) { return false }
        return Variant(of: request, fields: stored.variant.values.keys.sorted(), hasher: hasher)
            == stored.variant
    }

    /// Returns the best match (section 4.1): responses with Vary come before those without, then the newest Date wins.
    package func choice(
        among candidates: [StoredResponse],
        for request: HTTPRequest,
        hasher: (String) -> String
    ) -> StoredResponse? {
        candidates.filter { matches($0, request, hasher: hasher) }.max { left, right in
            let varies = (left.fields.contains("Vary"), right.fields.contains("Vary"))
            return varies.0 == varies.1 ? left.date < right.date : varies.1
        }
    }
}
