// SPDX-License-Identifier: Apache-2.0

/// Which bytes of a body a response brings, by its head and by what is known from an earlier response.
///
/// Every path asks this, and only this, whether a body is whole: a body that comes at once, one that is
/// continued after a break or a retry, and one that a killed process has begun.
package struct ExpectedBody: Sendable, Equatable {
    package enum Verdict: Sendable, Equatable {
        case whole, incomplete, tooLong
    }

    /// Bytes of the body that were there before.
    package let held: Int
    /// Bytes that the response brings; nil: its head does not say.
    package let added: Int?
    /// Bytes of the whole body; nil if not stated: the body ends with the message.
    package let total: Int?

    package init(held: Int, added: Int?, total: Int?) {
        (self.held, self.added, self.total) = (held, added, total)
    }

    /// Of a response on its own; of a 206 the part that its Content-Range names.
    package init(_ response: HTTPResponse) {
        let part = response.status == 206 ? response.contentRange?.bytes?.count : nil
        self.init(held: 0, added: part ?? response.contentLength, total: nil)
    }

    /// Of a 206 that continues `beginning` (RFC 9110, section 15.3.7).
    ///
    /// Nil where range, lengths, validator and coding do not agree with those of `beginning`: its bytes must not
    /// be appended then. The range may end early; the body is incomplete then.
    package init?(_ response: HTTPResponse, after beginning: StoredResponse, received: HTTPDate) {
        guard response.status == 206, case .part(let held, let known) = beginning.body, held.lowerBound == 0,
            let range = response.contentRange, let added = range.bytes,
            added.lowerBound == held.upperBound,
            let total = known ?? range.length, range.length ?? total == total, added.upperBound <= total,
            response.contentLength ?? added.count == added.count,
            beginning.hasBytes(of: response, received: received)
        else { return nil }
        // A 206 may leave it out.
        let coding = response.fields.combined("Content-Encoding")
        if let coding, coding != beginning.fields.combined("Content-Encoding") { return nil }
        self.init(held: held.upperBound, added: added.count, total: total)
    }

    /// What `length` bytes are, those that were there before included, after all of the message has come.
    package func verdict(on length: Int) -> Verdict {
        let received = length - held
        if received > added ?? .max || length > total ?? .max { return .tooLong }
        if received < added ?? 0 || length < total ?? 0 { return .incomplete }
        // Without a total it can't be known whether the part is the last one.
        return held > 0 && total == nil ? .incomplete : .whole
    }
}

extension HTTPResponse {
    /// The number in Content-Length; nil if it is missing or no number.
    var contentLength: Int? {
        fields.first("Content-Length").flatMap { HTTPText.isDigits($0) ? Int($0) : nil }
    }

    var contentRange: ContentRange? { fields.first("Content-Range").flatMap(ContentRange.init) }
}
