// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct StorabilityTests {
    static let statuses: [Row] =
        [200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501].map {
            Row("9110 15.1", response: "\($0)", "complete")
        }
        + [201, 202, 205, 302, 303, 307, 400, 401, 403, 408, 409, 418, 429, 500, 502, 503, 504].flatMap {
            [
                Row("9110 15.1", response: "\($0)", "nothingSaid"),
                Row("9111 3", response: "\($0) | CC: max-age=1", "complete"),
            ]
        }

    static let cases: [Row] = [
        Row("9111 3", request: "HEAD", "method"), Row("9111 3", request: "POST", "method"),
        Row("9111 3", request: "PUT", response: "200 | CC: max-age=1", "method"),
        Row("9110 15.2", response: "103 | CC: max-age=1", "status"),
        Row("9110 15.4.5", response: "304 | CC: max-age=1", "status"),
        Row("9111 3", response: "302 | Expires: @9", "complete"),
        Row("9111 3", response: "302 | Expires: 0", "complete"),
        Row("9111 3", response: "302 | CC: public", "complete"),
        Row("9111 3", response: "302 | CC: private", "complete"),
        Row("9111 3", response: "302 | CC: private=\"x\"", "complete"),
        Row("9111 3", response: "302 | CC: s-maxage=9", "nothingSaid"),
        Row("9111 3", response: "302 | CC: stale-if-error=9", "nothingSaid"),
        Row("9111 3", response: "302 | LM: @-9", "nothingSaid"),
        Row("9111 3", response: "599 | CC: max-age=9", "complete"),
        Row("9111 5.2.2.5", response: "CC: no-store", "responseForbids"),
        Row("9111 5.2.2.5", response: "CC: max-age=9, No-Store", "responseForbids"),
        Row("9111 5.2.2.5", response: "CC: max-age=9 | CC: no-store", "responseForbids"),
        Row("9111 5.2.2.5", response: "CC: no-store=\"x\"", "responseForbids"),
        Row("9111 5.2", response: "CC: x=\"no-store\"", "complete"),
        Row("9111 5.2", response: "CC: x=\"a, no-store\"", "complete"),
        Row("9111 5.2", response: "CC: x=\"a, no-store", "responseForbids"),
        Row("9111 5.2.2.3", response: "CC: no-store, must-understand", "complete"),
        Row("9111 5.2.2.3", response: "404 | CC: must-understand, no-store", "complete"),
        Row("9111 5.2.2.3", response: "599 | CC: max-age=9, must-understand", "status"),
        Row("9111 5.2.2.3", response: "599 | CC: max-age=9, no-store, must-understand", "status"),
        Row("9110 13.1.1", request: "If-Match: \"b\"", response: "412 | CC: max-age=9", "condition"),
        Row("9110 13.1.2", request: "If-None-Match: *", response: "412 | CC: max-age=9", "condition"),
        Row("9110 13.1.4", request: "If-Unmodified-Since: @-9", response: "412 | CC: max-age=9", "condition"),
        Row("9110 15.5.13", response: "412 | CC: max-age=9", "condition"),
        Row("9110 15.5.17", request: "Range: bytes=99-", response: "416 | CC: max-age=9", "condition"),
        Row("6585 3", response: "428 | CC: max-age=9", "condition"),
        Row("9110 13.1.1", request: "If-Match: \"b\"", response: "404 | CC: max-age=9", "condition"),
        Row("9110 13.1.3", request: "IMS: @-9", response: "302 | CC: max-age=9", "condition"),
        Row("9110 14.2", request: "Range: bytes=9-", response: "400 | CC: max-age=9", "condition"),
        Row("9110 13.1.2", request: "INM: \"b\"", response: "200 | CC: max-age=9", "complete"),
        Row("9111 5.2.2.4", response: "CC: no-cache", "complete"),
        Row("9111 5.2.1.5", request: "CC: no-store", "requestForbids"),
        Row("9111 5.2.1.5", request: "CC: x | CC: no-store", "requestForbids"),
        Row("9111 5.2.1.5", request: "CC: no-store", response: "CC: max-age=9", "requestForbids"),
        Row("9111 3.5", request: "Authorization: Basic abc", "complete"),
        Row("9111 3.5", request: "Authorization: Basic abc", response: "CC: max-age=9", "complete"),
        Row("9111 7.3", response: "Set-Cookie: a=b", "complete"),
        Row("9111 4.1", response: "Vary: a", "complete"),
        Row("9111 4.1", response: "Vary: *", "variesByAnything"),
        Row("9111 4.1", response: "Vary: a, *", "variesByAnything"),
        Row("9111 4.1", response: "Vary: a | Vary: *", "variesByAnything"),
        Row("9111 5.4", response: "Pragma: no-cache", "complete"),
        Row("9111 5.4", request: "Pragma: no-cache", "complete"),
        Row("9111 3.3", request: "Range: bytes=0-1", response: "200", "complete"),
        Row("9111 3.3", response: "206 | CR: bytes 0-1/9", "bytes 0-1/9"),
        Row("9111 3.3", response: "206 | CR: bytes 0-8/9", "bytes 0-8/9"),
        Row("9111 3.3", response: "206 | CR: bytes 0-1/*", "bytes 0-1/*"),
        Row("9110 14.4", response: "206", "unusableRange"),
        Row("9110 14.4", response: "206 | CR: bytes */9", "unusableRange"),
        Row("9110 14.4", response: "206 | CR: bytes 1-0/9", "unusableRange"),
        Row("9110 14.4", response: "206 | CR: lines 0-1/9", "unusableRange"),
        Row("9110 14.6", response: "206 | Content-Type: multipart/byteranges; boundary=x", "unusableRange"),
    ]

    /// Cases with a lifetime set by the caller.
    static let chosen: [Row] = [
        Row("5.2.2.5", response: "CC: no-store", "complete"), Row("3", response: "302", "complete"),
        Row("3", response: "500", "nothingSaid"), Row("3", response: "429", "nothingSaid"),
        Row("5.2.2.5", response: "404 | CC: no-store", "responseForbids"),
        Row("5.2.1.5", request: "CC: no-store", "requestForbids"),
        Row("4.1", response: "Vary: *", "variesByAnything"), Row("3", request: "POST", "method"),
    ]

    private func found(_ row: Row, _ policy: HTTPCachePolicy) throws -> String {
        switch policy.storing(row.response(), to: try row.request()) {
        case .complete: "complete"
        case .part(let range): range.text
        case .not(let refusal): "\(refusal)"
        }
    }

    @Test(arguments: statuses + cases) func `only permitted responses are stored`(_ row: Row) throws {
        #expect(try found(row, HTTPCachePolicy()) == row.expected)
    }

    @Test(arguments: chosen) func `a caller's lifetime overrides no-store of a success`(_ row: Row) throws {
        var policy = HTTPCachePolicy()
        policy.lifetime = 60
        #expect(try found(row, policy) == row.expected)
    }

    static let invalidations: [Row] = [
        Row("9111 4.4", request: "POST", "/x"), Row("9111 4.4", request: "PUT", response: "201", "/x"),
        Row("9111 4.4", request: "DELETE", response: "204", "/x"), Row("9111 4.4", request: "PATCH", "/x"),
        Row("9111 4.4", request: "M-SEARCH", "/x"), Row("9111 4.4", request: "POST", response: "303", "/x"),
        Row("9111 4.4", request: "POST", response: "404", ""),
        Row("9111 4.4", request: "POST", response: "500", ""),
        Row("9110 9.2.1", request: "GET", ""), Row("9110 9.2.1", request: "HEAD", ""),
        Row("9110 9.2.1", request: "OPTIONS", ""), Row("9110 9.2.1", request: "TRACE", ""),
        Row("9111 4.4", request: "POST", response: "201 | Location: /y", "/x /y"),
        Row("9111 4.4", request: "POST", response: "201 | Location: y?z", "/x /y?z"),
        Row("9111 4.4", request: "POST", response: "200 | Content-Location: https://A:443/y", "/x /y"),
        Row("9111 4.4", request: "POST", response: "201 | Location: /y | Content-Location: /z", "/x /y /z"),
        Row("9111 4.4", request: "POST", response: "201 | Location: /x", "/x"),
        Row("9111 4.4", request: "POST", response: "201 | Location: https://b/y", "/x"),
        Row("9111 4.4", request: "POST", response: "201 | Location: http://a/y", "/x"),
        Row("9111 4.4", request: "POST", response: "201 | Location: https://a:444/y", "/x"),
        Row("9111 4.4", request: "POST", response: "201 | Location: //a/y", "/x /y"),
        Row("9111 4.4", request: "POST", response: "201 | Location: http://[", "/x"),
        Row("9111 4.4", request: "POST", response: "404 | Location: /y", ""),
    ]

    @Test(arguments: invalidations) func `a successful unsafe request invalidates URLs`(_ row: Row) throws {
        let urls = HTTPCachePolicy().invalidated(by: row.response(), to: try row.request())
        #expect(urls.allSatisfy { $0.origin == "https://a" })
        #expect(urls.map { $0.text.dropFirst("https://a".count) }.joined(separator: " ") == row.expected)
    }
}
