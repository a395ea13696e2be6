// SPDX-License-Identifier: Apache-2.0

/// A single range of bytes that a request asks for (RFC 9110, section 14.1.2).
package enum RequestedRange: Sendable, Equatable {
    case from(Int, through: Int?)
    case last(Int)

    /// Returns nil for another unit, for several ranges, and for an invalid range; the field is then ignored, and the
    /// whole body is sent.
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

    /// Returns the selected bytes of a body of this length, or nil if the range can't be satisfied (416).
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

/// What the response to a request for the rest of a body means.
package enum Resumption: Sendable, Equatable {
    /// The response's body continues the partial body.
    case append(ExpectedBody)
    /// The response's body is a new body, from its first byte.
    case replace
    /// All bytes are already stored.
    case complete
    /// The response does not fit the partial body; discard that, and fetch the whole body again.
    case restart
    /// The response is an error or otherwise unrelated to the body; keep the partial body.
    case unrelated
}

extension StoredResponse {
    /// Whether the whole body is stored.
    package var isComplete: Bool { if case .complete = body { true } else { false } }

    /// The fields that request the rest of the body; nil if the stored part can't be continued safely.
    package var resumingFields: HTTPFields? {
        guard case .part(let bytes, _) = body, bytes.lowerBound == 0, !bytes.isEmpty,
            let validator = validators.ifRange
        else { return nil }
        return ["Range": "bytes=\(bytes.upperBound)-", "If-Range": validator]
    }

    /// Returns what the response to a request with ``resumingFields`` means (RFC 9110, section 15.3.7).
    package func resumption(by response: HTTPResponse, received: HTTPDate) -> Resumption {
        guard case .part(let bytes, let total) = body else { return .complete }
        switch response.status {
        case 206:
            return ExpectedBody(response, after: self, received: received).map(Resumption.append) ?? .restart
        case 416:
            let isWhole = total == bytes.upperBound && response.contentRange?.length == total
            // Most servers send no validator in a 416. If there is one, it must match the bytes.
            let other = Validators(response.fields, received: received)
            return isWhole && (other.isEmpty || hasBytes(of: response, received: received))
                ? .complete : .restart
        case 200: return .replace
        default: return .unrelated
        }
    }

    /// Returns whether the bytes of a response belong to the stored representation: both have the same strong validator.
    ///
    /// A 206 to a request with If-Range also needs the validator. RFC 9110, section 15.3.7, requires an ETag there if a
    /// 200 would have one; and without a validator, a server that ignores If-Range looks the same as one that supports
    /// it.
    func hasBytes(of response: HTTPResponse, received: HTTPDate) -> Bool {
        let (own, other) = (validators, Validators(response.fields, received: received))
        if own.tag != nil || other.tag != nil {
            guard let tag = own.tag, let new = other.tag else { return false }
            return tag.matchesStrongly(new)
        }
        return own.isDateStrong && other.modified != nil && other.modified == own.modified
    }
}
