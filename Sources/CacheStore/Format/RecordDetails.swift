// SPDX-License-Identifier: Apache-2.0

import Platform

/// The optional fields of a record: what callers attach to a value, and rare properties of the entry.
///
/// Add a new field of variable size here, to ``isEmpty`` and to the items below.
package struct RecordDetails: Sendable, Equatable {
    /// The entity tag of RFC 9110 section 8.8.3, as the server sent it.
    package var entityTag: String?
    /// The Last-Modified of RFC 9110 section 8.8.2, as the server sent it.
    package var lastModified: String?
    package var contentType: String?
    package var tags: [String] = []
    package var metadata: [String: String] = [:]
    /// The highest number of a rule (``RemovalRule``) that was in force when the record was written.
    ///
    /// nil if the record's creation time alone shows which rules apply to it.
    var followedRule: UInt64?
    /// The version of the change that stored the entry; nil in a directory that has never used remote stores.
    ///
    /// It is encoded with the other fields, because it would be longer as an item (``Record/version``).
    var version: ChangeVersion?
    /// Whether the entry records an unsuccessful lookup: there is no value.
    package var isNothing = false
    /// Whether the entry is never sent to remote stores.
    package var staysHere = false

    package init() {}

    package var isEmpty: Bool {
        entityTag == nil && lastModified == nil && contentType == nil && tags.isEmpty && metadata.isEmpty
            && followedRule == nil && version == nil && !isNothing && !staysHere
    }
}

/// An item: a kind, a varint length and that many bytes.
///
/// Unknown kinds are skipped, so that later versions can add some.
private enum ItemKind: UInt8 {
    case entityTag = 1
    case lastModified = 2
    case contentType = 3
    /// One tag; a record may have several of these items.
    case tag = 4
    /// A pair: the name's length as a varint, the name, the value.
    case metadata = 5
    /// The stale period as a span, for a value that never expires.
    ///
    /// For other values a flag announces the span; without an expiration, readers treat that flag as damage.
    case staleFor = 6
    /// No bytes: there is no value. The content is empty, and older versions read it as an empty value.
    case nothing = 7
    /// A varint.
    case followedRule = 8
    /// No bytes: the entry is for this machine alone.
    case staysHere = 9
}

extension Record {
    /// The details as bytes: a sequence of items, without the total length; empty if there are none.
    var items: [UInt8] {
        var bytes: [UInt8] = []
        if hasDetails {
            let details = details
            bytes.append(.entityTag, details.entityTag)
            bytes.append(.lastModified, details.lastModified)
            bytes.append(.contentType, details.contentType)
            for tag in details.tags { bytes.append(.tag, tag) }
            // Sorted, so that equal details have equal bytes.
            for (name, value) in details.metadata.sorted(by: { $0.key < $1.key }) {
                var pair: [UInt8] = []
                pair.append(varint: UInt64(name.utf8.count))
                bytes.append(.metadata, pair + name.utf8 + value.utf8)
            }
            if let rule = details.followedRule {
                var number: [UInt8] = []
                number.append(varint: rule)
                bytes.append(.followedRule, number)
            }
            if details.isNothing { bytes.append(.nothing, []) }
            if details.staysHere { bytes.append(.staysHere, []) }
        }
        if expires == nil, let staleFor {
            var span: [UInt8] = []
            span.append(span: staleFor.milliseconds)
            bytes.append(.staleFor, span)
        }
        return bytes
    }

    /// Parses ``items``; returns false if they are invalid.
    mutating func read(_ items: ByteReader) -> Bool {
        var items = items
        var details = details
        while items.remaining > 0 {
            guard let kind = items.byte(), let count = items.count(), let item = items.part(count) else {
                return false
            }
            guard let kind = ItemKind(rawValue: kind) else { continue }
            guard read(item, kind, into: &details) else { return false }
        }
        self.details = details
        return true
    }

    private mutating func read(
        _ item: ByteReader,
        _ kind: ItemKind,
        into details: inout RecordDetails
    ) -> Bool {
        var item = item
        if kind == .staleFor {
            guard let span = item.span(), item.remaining == 0 else { return false }
            if expires == nil { staleFor = span }
            return true
        }
        if kind == .followedRule {
            guard let number = item.varint(), item.remaining == 0 else { return false }
            details.followedRule = number
            return true
        }
        if kind == .nothing {
            details.isNothing = true
            return item.remaining == 0
        }
        if kind == .staysHere {
            details.staysHere = true
            return item.remaining == 0
        }
        var name = ""
        if kind == .metadata {
            guard let count = item.count(), let text = item.text(count) else { return false }
            name = text
        }
        guard let text = item.text(item.remaining) else { return false }
        switch kind {
        case .entityTag: details.entityTag = text
        case .lastModified: details.lastModified = text
        case .contentType: details.contentType = text
        case .tag: details.tags.append(text)
        case .metadata: details.metadata[name] = text
        case .staleFor, .followedRule, .nothing, .staysHere: break
        }
        return true
    }
}

extension [UInt8] {
    fileprivate mutating func append(_ kind: ItemKind, _ text: String?) {
        if let text { append(kind, Array(text.utf8)) }
    }

    fileprivate mutating func append(_ kind: ItemKind, _ payload: [UInt8]) {
        append(kind.rawValue)
        append(varint: UInt64(payload.count))
        self += payload
    }
}
