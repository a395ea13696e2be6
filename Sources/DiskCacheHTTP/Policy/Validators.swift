// SPDX-License-Identifier: Apache-2.0

/// An entity tag, the value of ETag (RFC 9110, section 8.8.3).
package struct EntityTag: Sendable, Equatable {
    package let isWeak: Bool
    /// The text between the quotation marks.
    package let opaque: String
    /// The text as received, which is sent back unchanged.
    package let text: String

    /// Returns nil for an empty text, and for an unquoted one with spaces, commas or quotation marks.
    ///
    /// Any other text without quotation marks, as some servers send it, is accepted as if it had them.
    package init?(_ text: String) {
        self.text = text
        isWeak = text.hasPrefix("W/\"")
        let tag = isWeak ? String(text.dropFirst(2)) : text
        if tag.utf8.count >= 2, tag.hasPrefix("\""), tag.hasSuffix("\"") {
            opaque = String(tag.dropFirst().dropLast())
        } else {
            guard !tag.isEmpty, !tag.contains(where: { " ,\"\t".contains($0) }) else { return nil }
            opaque = tag
        }
    }

    /// Returns whether both tags stand for the same bytes.
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && opaque == other.opaque
    }

    /// Returns whether both tags stand for equivalent representations.
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }
}

/// The validators of a response, which distinguish one state of a resource from others.
package struct Validators: Sendable, Equatable {
    package let tag: EntityTag?
    /// Last-Modified as it was sent.
    package let modified: String?
    /// Whether the date alone proves that the bytes are the same (RFC 9110, section 8.8.2.2).
    package let isDateStrong: Bool

    /// Creates the validators of a response.
    package init(_ fields: HTTPFields, received: HTTPDate) {
        tag = fields.first("ETag").flatMap(EntityTag.init)
        let text = fields.first("Last-Modified")
        let moment = text.flatMap { HTTPDate($0, now: received) }
        modified = moment == nil ? nil : text
        let date = fields.first("Date").flatMap { HTTPDate($0, now: received) }
        // At least a second, so that there was no change within the same second.
        isDateStrong = if let moment, let date { date.since(moment) >= 1 } else { false }
    }

    /// Whether there are no validators.
    package var isEmpty: Bool { tag == nil && modified == nil }

    /// The value of If-Range in a request for a part or the rest of a body; nil if no validator is strong.
    package var ifRange: String? {
        if let tag { return tag.isWeak ? nil : tag.text }
        return isDateStrong ? modified : nil
    }

    /// Returns whether a 304 refers to the response with the `stored` validators (RFC 9111, section 4.3.4).
    ///
    /// Without any validator it does if the request named only that response. A weak tag and a strong one of the same
    /// content match: servers that compress send one with a body and the other without.
    package func identify(_ stored: Validators, isOnlyOne: Bool = true) -> Bool {
        if let tag, let old = stored.tag { return tag.matchesWeakly(old) }
        if let tag, !tag.isWeak {
            return modified != nil && modified == stored.modified && stored.isDateStrong
        }
        if let modified, let old = stored.modified { return modified == old }
        return isEmpty && isOnlyOne
    }
}

extension Validators {
    /// Returns whether a response to HEAD refers to the response with the `stored` validators: each of its validators is the
    /// same (RFC 9111, section 4.3.5).
    package func agree(with stored: Validators) -> Bool {
        let isSameTag = tag.map { tag in stored.tag.map(tag.matchesWeakly) ?? false } ?? true
        return isSameTag && (modified == nil || modified == stored.modified)
    }
}

extension StoredResponse {
    /// The validators of this response.
    package var validators: Validators { Validators(fields, received: received) }

    /// Returns whether the sender of a conditional request already has this response, or nil without a condition (RFC 9111,
    /// section 4.3.2).
    package func isHeld(by request: HTTPRequest, now: HTTPDate) -> Bool? {
        if request.fields.contains("If-None-Match") {
            let tags = request.fields.members(of: "If-None-Match")
            if tags == ["*"] { return true }
            guard let own = validators.tag else { return false }
            return tags.compactMap(EntityTag.init).contains { $0.matchesWeakly(own) }
        }
        guard let text = request.fields.first("If-Modified-Since"), let since = HTTPDate(text, now: now)
        else { return nil }
        let modified = validators.modified.flatMap { HTTPDate($0, now: received) }
        return (modified ?? date) <= since
    }
}
