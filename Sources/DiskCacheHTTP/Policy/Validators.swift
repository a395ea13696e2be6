// SPDX-License-Identifier: Apache-2.0

/// An entity tag: the value of an ETag field (RFC 9110, section 8.8.3).
package struct EntityTag: Sendable, Equatable {
    package let isWeak: Bool
    /// The text between the quotation marks, for comparisons.
    package let opaque: String
    /// The text as received; requests send it back unchanged.
    package let text: String

    /// The longest tag in bytes: a longer one might make a request too long for the server.
    private static let longest = 1024

    /// Returns nil for an empty or very long text, for one with control characters, which can't be sent, and for an
    /// unquoted text with spaces, commas or quotation marks.
    ///
    /// Some servers omit the quotation marks: any other text without them counts as a strong tag.
    package init?(_ text: String) {
        guard text.utf8.count <= Self.longest, text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            return nil
        }
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

    /// Returns whether both tags guarantee identical bytes.
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && opaque == other.opaque
    }

    /// Returns whether both tags denote equivalent representations.
    package func matchesWeakly(_ other: EntityTag) -> Bool { opaque == other.opaque }
}

/// The validators of a response, which distinguish one state of a resource from its other states.
package struct Validators: Sendable, Equatable {
    package let tag: EntityTag?
    /// The value of Last-Modified as received.
    package let modified: String?
    /// Whether an equal Last-Modified alone proves that the bytes are the same (RFC 9110, section 8.8.2.2).
    package let isDateStrong: Bool

    /// Creates the validators of a response.
    package init(_ fields: HTTPFields, received: HTTPDate) {
        tag = fields.first("ETag").flatMap(EntityTag.init)
        let text = fields.first("Last-Modified")
        let moment = text.flatMap { HTTPDate($0, now: received) }
        modified = moment == nil ? nil : text
        let date = fields.first("Date").flatMap { HTTPDate($0, now: received) }
        // A difference of at least a second excludes a later change within the same second.
        isDateStrong = if let moment, let date { date.since(moment) >= 1 } else { false }
    }

    /// Whether there are no validators.
    package var isEmpty: Bool { tag == nil && modified == nil }

    /// The value for If-Range in a request for a part or the rest of a body; nil if there is no strong validator.
    package var ifRange: String? {
        if let tag { return tag.isWeak ? nil : tag.text }
        return isDateStrong ? modified : nil
    }

    /// Returns whether a 304 refers to the response that has the `stored` validators (RFC 9111, section 4.3.4).
    ///
    /// A 304 without validators does if the request named only that response (`isOnlyOne`). A weak and a strong tag with
    /// the same content match, since servers that compress responses send one with the body and the other without it.
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
    /// Returns whether a response to HEAD refers to the response that has the `stored` validators (RFC 9111, section
    /// 4.3.5).
    ///
    /// Each validator of the response to HEAD must equal the stored one.
    package func agree(with stored: Validators) -> Bool {
        let isSameTag = tag.map { tag in stored.tag.map(tag.matchesWeakly) ?? false } ?? true
        return isSameTag && (modified == nil || modified == stored.modified)
    }
}

extension StoredResponse {
    /// The validators of this response.
    package var validators: Validators { Validators(fields, received: received) }

    /// Returns whether the sender of a conditional request already has this response (RFC 9111, section 4.3.2).
    ///
    /// Returns nil if the request has no condition.
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
