// SPDX-License-Identifier: Apache-2.0

/// The number of bytes that a response should deliver, according to its head and to an earlier partial response.
///
/// This is the only check for completeness, whether a body is received in one piece, continued after an interruption or a
/// retry, or was started by a process that was killed.
package struct ExpectedBody: Sendable, Equatable {
    package enum Verdict: Sendable, Equatable {
        case whole, incomplete, tooLong
    }

    /// The number of bytes of the body that were stored before this response.
    package let held: Int
    /// The number of bytes that the response delivers; nil if its head does not state it.
    package let added: Int?
    /// The length of the whole body in bytes; nil if not stated, in which case the body ends with the message.
    package let total: Int?

    package init(held: Int, added: Int?, total: Int?) {
        (self.held, self.added, self.total) = (held, added, total)
    }

    /// Creates the expectation for a response alone; for a 206, it covers the part in Content-Range.
    package init(_ response: HTTPResponse) {
        let part = response.status == 206 ? response.contentRange?.bytes?.count : nil
        self.init(held: 0, added: part ?? response.contentLength, total: nil)
    }

    /// Creates the expectation for a 206 that continues `beginning` (RFC 9110, section 15.3.7).
    ///
    /// Returns nil if the range, the lengths, the validator or the coding do not match those of `beginning`; then the
    /// bytes must not be appended. The range may end before the end of the body; the body then remains incomplete.
    package init?(_ response: HTTPResponse, after beginning: StoredResponse, received: HTTPDate) {
        guard response.status == 206, case .part(let held, let known) = beginning.body, held.lowerBound == 0,
            let range = response.contentRange, let added = range.bytes,
            added.lowerBound == held.upperBound,
            let total = known ?? range.length, range.length ?? total == total, added.upperBound <= total,
            response.contentLength ?? added.count == added.count,
            beginning.hasBytes(of: response, received: received)
        else { return nil }
        // A 206 may omit Content-Encoding.
        let coding = response.fields.combined("Content-Encoding")
        if let coding, coding != beginning.fields.combined("Content-Encoding") { return nil }
        self.init(held: held.upperBound, added: added.count, total: total)
    }

    /// Returns the verdict on a body of `length` bytes, including the bytes stored before, once the message has ended.
    package func verdict(on length: Int) -> Verdict {
        let received = length - held
        if received > added ?? .max || length > total ?? .max { return .tooLong }
        if received < added ?? 0 || length < total ?? 0 { return .incomplete }
        // Without a total length, further parts may follow.
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
