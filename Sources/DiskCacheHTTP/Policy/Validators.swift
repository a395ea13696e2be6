// SPDX-License-Identifier: Apache-2.0

/// The value of an ETag (RFC 9110, section 8.8.3).
package struct EntityTag: Sendable, Equatable {
    package let isWeak: Bool
    /// Between the quotation marks.
    package let opaque: String
    /// As it was sent, which is how it is sent back.
    package let text: String

    /// Nil for an empty text, and for one with spaces or commas but without quotation marks; else what
    /// servers send without quotation marks is taken as if it had them.
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

    /// The same bytes.
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && opaque == other.opaque
    }

    /// The same meaning.
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }
}

/// What tells one state of a resource from others.
package struct Validators: Sendable, Equatable {
    package let tag: EntityTag?
    /// Last-Modified as it was sent.
    package let modified: String?
    /// Whether the date alone proves that the bytes are the same (RFC 9110, section 8.8.2.2).
    package let isDateStrong: Bool

    /// Those of a response.
    package init(_ fields: HTTPFields, received: HTTPDate) {
        tag = fields.first("ETag").flatMap(EntityTag.init)
        let text = fields.first("Last-Modified")
        let moment = text.flatMap { HTTPDate($0, now: received) }
        modified = moment == nil ? nil : text
        let date = fields.first("Date").flatMap { HTTPDate($0, now: received) }
        // A second at least, so that there was no change within the same second.
        isDateStrong = if let moment, let date { date.since(moment) >= 1 } else { false }
    }

    /// Whether there are none.
    package var isEmpty: Bool { tag == nil && modified == nil }

    /// What a request for the rest of a body, or for a part of it, must name; nil if nothing is strong
    /// enough.
    package var ifRange: String? {
        if let tag { return tag.isWeak ? nil : tag.text }
        return isDateStrong ? modified : nil
    }

    /// Whether a 304 speaks of the response with `stored` validators (RFC 9111, section 4.3.4).
    ///
    /// One without any validator does, if only that response was asked about. A weak tag and a strong one of
    /// the same content do too: servers that compress send the one with a body and the other without.
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
    /// Whether a response to HEAD speaks of the response with `stored` validators: each that it has is the
    /// same (RFC 9111, section 4.3.5).
    package func agree(with stored: Validators) -> Bool {
        let isSameTag = tag.map { tag in stored.tag.map(tag.matchesWeakly) ?? false } ?? true
        return isSameTag && (modified == nil || modified == stored.modified)
    }
}

extension StoredResponse {
    /// What tells this state of the resource from others.
    package var validators: Validators { Validators(fields, received: received) }

    /// Whether the condition of a request says that its sender has this response already; nil without such a
    /// condition (RFC 9111, section 4.3.2).
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
