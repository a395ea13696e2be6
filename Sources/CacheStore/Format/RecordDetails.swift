// SPDX-License-Identifier: Apache-2.0

import Platform

/// What a user may attach to a value.
///
/// A new field of no fixed size goes here, into ``isEmpty``, and into ``RecordItems``.
package struct RecordDetails: Sendable, Equatable {
    /// The entity tag of RFC 9110 section 8.8.3, as the server sent it.
    package var entityTag: String?
    /// The Last-Modified of RFC 9110 section 8.8.2, as the server sent it.
    package var lastModified: String?
    package var contentType: String?
    package var tags: [String] = []
    package var metadata: [String: String] = [:]

    package init() {}

    package var isEmpty: Bool {
        entityTag == nil && lastModified == nil && contentType == nil && tags.isEmpty && metadata.isEmpty
    }
}

/// The details of a record as bytes: items of a kind, a varint length and so many bytes.
///
/// Unknown kinds are skipped, so that later versions can add some.
enum RecordItems {
    private enum Kind: UInt8 {
        case entityTag = 1
        case lastModified = 2
        case contentType = 3
        /// One of several.
        case tag = 4
        /// A pair: the name's length as a varint, the name, the value.
        case metadata = 5
        /// A span, of a value that never expires: for others there is a flag, which other versions take for damage
        /// without an expiration.
        case staleFor = 6
    }

    /// Without their length; empty where there are none.
    ///
    /// - Parameter staleFor: of a value that never expires; nil for any other.
    static func bytes(of details: RecordDetails?, staleFor: Duration?) -> [UInt8] {
        var bytes: [UInt8] = []
        if let details {
            append(.entityTag, details.entityTag, to: &bytes)
            append(.lastModified, details.lastModified, to: &bytes)
            append(.contentType, details.contentType, to: &bytes)
            for tag in details.tags { append(.tag, tag, to: &bytes) }
            // In order, so that equal details make equal bytes.
            for (name, value) in details.metadata.sorted(by: { $0.key < $1.key }) {
                var pair: [UInt8] = []
                pair.append(varint: UInt64(name.utf8.count))
                append(.metadata, pair + name.utf8 + value.utf8, to: &bytes)
            }
        }
        if let staleFor {
            var span: [UInt8] = []
            span.append(span: staleFor.milliseconds)
            append(.staleFor, span, to: &bytes)
        }
        return bytes
    }

    private static func append(_ kind: Kind, _ text: String?, to bytes: inout [UInt8]) {
        if let text { append(kind, Array(text.utf8), to: &bytes) }
    }

    private static func append(_ kind: Kind, _ payload: [UInt8], to bytes: inout [UInt8]) {
        bytes.append(kind.rawValue)
        bytes.append(varint: UInt64(payload.count))
        bytes += payload
    }

    /// What ``bytes(of:staleFor:)`` was given; nil where they make no sense.
    static func read(_ items: ByteReader) -> (details: RecordDetails, staleFor: Duration?)? {
        var items = items
        var details = RecordDetails()
        var staleFor: Duration?
        while items.remaining > 0 {
            guard let kind = items.byte(), let count = items.count(), let item = items.part(count) else {
                return nil
            }
            guard let kind = Kind(rawValue: kind) else { continue }
            guard read(item, kind, into: &details, &staleFor) else { return nil }
        }
        return (details, staleFor)
    }

    private static func read(
        _ item: ByteReader,
        _ kind: Kind,
        into details: inout RecordDetails,
        _ staleFor: inout Duration?
    ) -> Bool {
        var item = item
        if kind == .staleFor {
            guard let span = item.span(), item.remaining == 0 else { return false }
            staleFor = span
            return true
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
        case .staleFor: break
        }
        return true
    }
}
