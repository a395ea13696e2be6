// SPDX-License-Identifier: Apache-2.0

/// One range of bytes that a request asks for (RFC 9110, section 14.1.2).
package enum RequestedRange: Sendable, Equatable {
    case from(Int, through: Int?)
    case last(Int)

    /// Nil for another unit, several ranges and what is no range: such a field is ignored, and all of the
    /// body sent.
    package init?(_ text: String) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            .map(HTTPText.trimmed)
        guard parts.count == 2, HTTPText.lowercased(parts[0]) == "bytes" else { return nil }
        let ends = parts[1].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
        guard ends.count == 2 else { return nil }
        if ends[0].isEmpty {
            guard HTTPText.isDigits(ends[1]) else { return nil }
            self = .last(Int(ends[1]) ?? .max)
            return
        }
        guard HTTPText.isDigits(ends[0]), ends[1].isEmpty || HTTPText.isDigits(ends[1]) else { return nil }
        let first = Int(ends[0]) ?? .max
        let last = ends[1].isEmpty ? nil : Int(ends[1]) ?? .max
        if let last, last < first { return nil }
        self = .from(first, through: last)
    }

    /// The bytes of a body of this length; nil if none of them is meant (416).
    package func bytes(of length: Int) -> Range<Int>? {
        switch self {
        case .last(let count):
            guard count > 0, length > 0 else { return nil }
            return max(0, length - count)..<length
        case .from(let first, let last):
            guard first < length else { return nil }
            return first..<(min(last ?? length - 1, length - 1) + 1)
        }
    }
}

/// A Content-Range (RFC 9110, section 14.4).
package struct ContentRange: Sendable, Equatable {
    /// Nil for `*`: none.
    package var bytes: Range<Int>?
    /// Nil if it is not known.
    package var length: Int?

    /// Nil for what is none: such a response must not be stored or combined.
    package init?(_ text: String) {
        let words = text.split(separator: " ")
        guard words.count == 2, HTTPText.lowercased(String(words[0])) == "bytes" else { return nil }
        let sides = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard sides.count == 2 else { return nil }
        let length = HTTPText.isDigits(sides[1]) ? Int(sides[1]) : nil
        guard length != nil || sides[1] == "*" else { return nil }
        self.length = length
        if sides[0] == "*" {
            guard length != nil else { return nil }
            return
        }
        let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, ends.allSatisfy({ HTTPText.isDigits($0) }), let first = Int(ends[0]),
            let last = Int(ends[1]), first <= last, last < (length ?? .max)
        else { return nil }
        bytes = first..<(last + 1)
    }

    package init(bytes: Range<Int>?, length: Int?) {
        self.bytes = bytes
        self.length = length
    }

    /// As it is sent.
    package var text: String {
        let total = length.map(String.init) ?? "*"
        return bytes.map { "bytes \($0.lowerBound)-\($0.upperBound - 1)/\(total)" } ?? "bytes */\(total)"
    }
}

/// How a download that broke off goes on.
package enum Resumption: Sendable, Equatable {
    /// The body of the response continues what is there.
    case append
    /// The body of the response is a new one, from its beginning.
    case replace
    /// All bytes are there already.
    case complete
    /// The response is of no use: what is there goes, and all of it is fetched.
    case restart
    /// The response says nothing about the bytes, as an error does: what is there stays.
    case unrelated
}

extension StoredResponse {
    /// Whether all bytes are there.
    package var isComplete: Bool { if case .complete = body { true } else { false } }

    /// The fields of a request for the rest; nil if what is there can't be continued safely.
    package var resumingFields: HTTPFields? {
        guard case .part(let bytes, _) = body, bytes.lowerBound == 0, !bytes.isEmpty,
            let validator = validators.ifRange
        else { return nil }
        return ["Range": "bytes=\(bytes.upperBound)-", "If-Range": validator]
    }

    /// What the response to such a request means (RFC 9110, section 15.3.7; RFC 9111, section 3.4).
    package func resumption(by response: HTTPResponse, received: HTTPDate) -> Resumption {
        guard case .part(let bytes, let total) = body else { return .complete }
        let range = response.fields.first("Content-Range").flatMap(ContentRange.init)
        switch response.status {
        case 206:
            guard let range, range.bytes?.lowerBound == bytes.upperBound,
                total == nil || range.length == nil || total == range.length,
                hasBytes(of: response, received: received, wasAsked: true)
            else { return .restart }
            return .append
        case 416: return range?.length == bytes.upperBound && total == bytes.upperBound ? .complete : .restart
        case 200: return .replace
        default: return .unrelated
        }
    }

    /// This response with the bytes of a 206 beside its own; nil if they leave a gap, or may be those of
    /// another state (RFC 9111, section 3.4; RFC 9110, section 15.3.7.3).
    ///
    /// Its fields are those of the newer response. With all bytes it is a 200.
    ///
    /// - Parameter wasAsked: Whether the request named this response in If-Range.
    package func combined(
        with response: HTTPResponse,
        requested: HTTPDate,
        received: HTTPDate,
        wasAsked: Bool = false
    ) -> StoredResponse? {
        guard case .part(let held, let total) = body, response.status == 206,
            let range = response.fields.first("Content-Range").flatMap(ContentRange.init),
            let added = range.bytes,
            added.lowerBound <= held.upperBound, held.lowerBound <= added.upperBound,
            total == nil || range.length == nil || total == range.length,
            hasBytes(of: response, received: received, wasAsked: wasAsked)
        else { return nil }
        let length = total ?? range.length
        let bytes = min(held.lowerBound, added.lowerBound)..<max(held.upperBound, added.upperBound)
        guard bytes.upperBound <= length ?? .max else { return nil }
        var combined = renewed(by: response, requested: requested, received: received)
        combined.fields.set("Content-Length", String(bytes.count))
        combined.fields.set("Content-Range", ContentRange(bytes: bytes, length: length).text)
        combined.status = 206
        combined.body = .part(bytes, of: length)
        guard bytes.count == length else { return combined }
        combined.fields.remove(["Content-Range"])
        combined.status = 200
        combined.body = .complete(bytes.count)
        return combined
    }

    /// Whether the bytes of a 206 are of the same state as those that are stored: by a strong validator.
    ///
    /// - Parameter wasAsked: Whether the request named this response in If-Range: a 206 is what confirms it
    ///   then, and
    ///   need not name a validator again.
    func hasBytes(of response: HTTPResponse, received: HTTPDate, wasAsked: Bool = false) -> Bool {
        let (own, other) = (validators, Validators(response.fields, received: received))
        if let tag = other.tag { return own.tag.map(tag.matchesStrongly) ?? false }
        if let modified = other.modified { return modified == own.modified && (wasAsked || own.isDateStrong) }
        return wasAsked
    }
}
