// SPDX-License-Identifier: Apache-2.0

/// The bytes that a response delivers, by its head and by an earlier partial response.
///
/// This is the only check of whether a body is complete, on every path: a body that is received at once, one that is
/// continued after an interruption or a retry, and one that a killed process has started.
package struct ExpectedBody: Sendable, Equatable {
    package enum Verdict: Sendable, Equatable {
        case whole, incomplete, tooLong
    }

    /// Bytes of the body that were already stored.
    package let held: Int
    /// Bytes that the response delivers; nil if its head does not state them.
    package let added: Int?
    /// Bytes of the whole body; nil if not stated, in which case the body ends with the message.
    package let total: Int?

    package init(held: Int, added: Int?, total: Int?) {
        (self.held, self.added, self.total) = (held, added, total)
    }

    /// Creates the expectation of a response on its own; of a 206, of the part in its Content-Range.
    package init(_ response: HTTPResponse) {
        let part = response.status == 206 ? response.contentRange?.bytes?.count : nil
        self.init(held: 0, added: part ?? response.contentLength, total: nil)
    }

    /// Creates the expectation of a 206 that continues `beginning` (RFC 9110, section 15.3.7).
    ///
    /// Returns nil if range, lengths, validator or coding do not match those of `beginning`: then the bytes must not be
    /// appended. The range may end early, which leaves the body incomplete.
    package init?(_ response: HTTPResponse, after beginning: StoredResponse, received: HTTPDate) {
        guard response.status == 206, case .part(let held, let known) = beginning.body, held.lowerBound == 0,
            let range = response.contentRange, let added = range.bytes,
            added.lowerBound == held.upperBound,
            let total = known ?? range.length, range.length ?? total == total, added.upperBound <= total,
            response.contentLength ?? added.count == added.count,
            beginning.hasBytes(of: response, received: received)
        else { return nil }
        // A 206 may omit it.
        let coding = response.fields.combined("Content-Encoding")
        if let coding, coding != beginning.fields.combined("Content-Encoding") { return nil }
        self.init(held: held.upperBound, added: added.count, total: total)
    }

    /// Returns the verdict on a body of `length` bytes, including those stored before, after the end of the message.
    package func verdict(on length: Int) -> Verdict {
        let received = length - held
        if received > added ?? .max || length > total ?? .max { return .tooLong }
        if received < added ?? 0 || length < total ?? 0 { return .incomplete }
        // Without a total, the part may not be the last one.
        return held > 0 && total == nil ? .incomplete : .whole
    }
}

extension HTTPResponse {
    /// The value of Content-Length; nil if it is missing or not a number.
    var contentLength: Int? {
        fields.first("Content-Length").flatMap { HTTPText.isDigits($0) ? Int($0) : nil }
    }

    var contentRange: ContentRange? { fields.first("Content-Range").flatMap(ContentRange.init) }
}
