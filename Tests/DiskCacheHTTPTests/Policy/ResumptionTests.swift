// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct ResumptionTests {
    static let tag = "ETag: \"a\""
    static let weak = "ETag: W/\"a\""
    static let dated = "Date: @0 | LM: @-9"

    static let requests: [Row] = [
        Row("9110 13.1.5", stored: "0-4/10 | \(tag)", "If-Range: \"a\" | Range: bytes=5-"),
        Row("9110 13.1.5", stored: "0-4/* | \(tag)", "If-Range: \"a\" | Range: bytes=5-"),
        Row("9110 13.1.5", stored: "0-4/10 | \(dated)", "If-Range: @-9 | Range: bytes=5-"),
        Row("9110 13.1.5", stored: "0-4/10 | \(tag) | \(dated)", "If-Range: \"a\" | Range: bytes=5-"),
        Row("9110 13.1.5", stored: "0-4/10 | \(weak)", "nil"),
        Row("9110 13.1.5", stored: "0-4/10 | \(weak) | \(dated)", "nil"),
        Row("9110 8.8.2.2", stored: "0-4/10 | Date: @0 | LM: @0", "nil"),
        Row("9110 8.8.2.2", stored: "0-4/10 | LM: @-9", "nil"),
        Row("9110 13.1.5", stored: "0-4/10", "nil"), Row("9110 14.2", stored: "1-4/10 | \(tag)", "nil"),
        Row("9110 14.2", stored: "200 | \(tag)", "nil"),
    ]

    @Test(arguments: requests) func `a strong validator is needed to resume a download`(_ row: Row) throws {
        let stored = try #require(try row.storedResponse())
        #expect(stored.resumingFields.map(Row.text) ?? "nil" == row.expected)
    }

    static let responses: [Row] = [
        Row(
            "9110 15.3.7",
            stored: "0-4/10 | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-9/10",
            "append 5+5 of 10"
        ),
        Row(
            "9110 15.3.7",
            stored: "0-4/10 | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-9/*",
            "append 5+5 of 10"
        ),
        Row(
            "9110 15.3.7",
            stored: "0-4/* | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-9/10",
            "append 5+5 of 10"
        ),
        Row("9110 15.3.7", stored: "0-4/* | \(tag)", response: "206 | \(tag) | CR: bytes 5-9/*", "restart"),
        Row(
            "9110 15.3.7",
            stored: "0-4/10 | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-6/10",
            "append 5+2 of 10"
        ),
        Row(
            "9110 15.3.7",
            stored: "0-4/10 | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-6/*",
            "append 5+2 of 10"
        ),
        Row(
            "9110 15.3.7",
            stored: "0-4/* | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-6/10",
            "append 5+2 of 10"
        ),
        Row(
            "9110 8.6",
            stored: "0-4/10 | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-9/10 | Content-Length: 5",
            "append 5+5 of 10"
        ),
        Row(
            "9110 8.6",
            stored: "0-4/10 | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-9/10 | Content-Length: 6",
            "restart"
        ),
        Row(
            "9110 8.6",
            stored: "0-4/10 | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-9/10 | Content-Length: 4",
            "restart"
        ),
        Row("9110 15.3.7", stored: "0-4/10 | \(tag)", response: "206 | CR: bytes 5-9/10", "restart"),
        Row(
            "9110 15.3.7.3",
            stored: "0-4/10 | \(tag)",
            response: "206 | ETag: \"b\" | CR: bytes 5-9/10",
            "restart"
        ),
        Row(
            "9110 15.3.7.3",
            stored: "0-4/10 | \(tag)",
            response: "206 | \(weak) | CR: bytes 5-9/10",
            "restart"
        ),
        Row(
            "9110 15.3.7.3",
            stored: "0-4/10 | \(tag) | \(dated)",
            response: "206 | LM: @-9 | CR: bytes 5-9/10",
            "restart"
        ),
        Row(
            "9110 15.3.7.3",
            stored: "0-4/10 | \(tag) | \(dated)",
            response: "206 | \(tag) | LM: @-8 | CR: bytes 5-9/10",
            "append 5+5 of 10"
        ),
        Row(
            "9110 15.3.7.3",
            stored: "0-4/10 | \(dated)",
            response: "206 | LM: @-9 | CR: bytes 5-9/10",
            "append 5+5 of 10"
        ),
        Row(
            "9110 15.3.7.3",
            stored: "0-4/10 | \(dated)",
            response: "206 | LM: @-8 | CR: bytes 5-9/10",
            "restart"
        ),
        Row("9110 15.3.7.3", stored: "0-4/10 | \(dated)", response: "206 | CR: bytes 5-9/10", "restart"),
        Row(
            "9110 15.3.7.3",
            stored: "0-4/10 | \(dated)",
            response: "206 | \(tag) | CR: bytes 5-9/10",
            "restart"
        ),
        Row(
            "9110 15.3.7.3",
            stored: "0-4/10 | \(dated)",
            response: "206 | \(tag) | LM: @-9 | CR: bytes 5-9/10",
            "restart"
        ),
        Row(
            "9110 8.4",
            stored: "0-4/10 | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-9/10 | Content-Encoding: gzip",
            "restart"
        ),
        Row(
            "9110 8.4",
            stored: "0-4/10 | \(tag) | Content-Encoding: gzip",
            response: "206 | \(tag) | CR: bytes 5-9/10",
            "append 5+5 of 10"
        ),
        Row(
            "9110 8.4",
            stored: "0-4/10 | \(tag) | Content-Encoding: gzip",
            response: "206 | \(tag) | CR: bytes 5-9/10 | Content-Encoding: br",
            "restart"
        ),
        Row("9110 14.4", stored: "0-4/10 | \(tag)", response: "206 | \(tag) | CR: bytes 4-9/10", "restart"),
        Row("9110 14.4", stored: "0-4/10 | \(tag)", response: "206 | \(tag) | CR: bytes 6-9/10", "restart"),
        Row("9110 14.4", stored: "0-4/10 | \(tag)", response: "206 | \(tag) | CR: bytes 5-9/11", "restart"),
        Row("9110 14.4", stored: "0-4/10 | \(tag)", response: "206 | \(tag) | CR: bytes 5-10/*", "restart"),
        Row("9110 14.4", stored: "0-4/10 | \(tag)", response: "206 | \(tag) | CR: bytes */10", "restart"),
        Row("9110 14.4", stored: "0-4/10 | \(tag)", response: "206 | \(tag)", "restart"),
        Row(
            "9110 14.4",
            stored: "0-4/* | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-9223372036854775806/9223372036854775807",
            "append 5+9223372036854775802 of 9223372036854775807"
        ),
        Row(
            "9110 14.4",
            stored: "0-4/* | \(tag)",
            response: "206 | \(tag) | CR: bytes 5-9223372036854775807/*",
            "restart"
        ),
        Row("9110 13.1.5", stored: "0-4/10 | \(tag)", response: "200 | \(tag)", "replace"),
        Row("9110 15.5.17", stored: "0-9/10 | \(tag)", response: "416 | CR: bytes */10", "complete"),
        Row("9110 15.5.17", stored: "0-9/10 | \(tag)", response: "416 | \(tag) | CR: bytes */10", "complete"),
        Row(
            "9110 15.5.17",
            stored: "0-9/10 | \(tag)",
            response: "416 | ETag: \"b\" | CR: bytes */10",
            "restart"
        ),
        Row("9110 15.5.17", stored: "0-9/10 | \(tag)", response: "416 | LM: @0 | CR: bytes */10", "restart"),
        Row("9110 15.5.17", stored: "0-4/10 | \(tag)", response: "416 | CR: bytes */5", "restart"),
        Row("9110 15.5.17", stored: "0-4/5 | \(tag)", response: "416 | CR: bytes */4", "restart"),
        Row("9110 15.5.17", stored: "0-4/* | \(tag)", response: "416 | CR: bytes */5", "restart"),
        Row("9110 15.5.17", stored: "0-4/10 | \(tag)", response: "416", "restart"),
        Row("9110 15.6.4", stored: "0-4/10 | \(tag)", response: "503", "unrelated"),
        Row("9110 15.5.5", stored: "0-4/10 | \(tag)", response: "404", "unrelated"),
        Row("9110 15.3.7", stored: "200 | \(tag)", response: "200", "complete"),
    ]

    @Test(arguments: responses) func `a response is appended only if it fits`(_ row: Row) throws {
        let stored = try #require(try row.storedResponse())
        let found =
            switch stored.resumption(by: row.response(), received: row.moment) {
            case .append(let body): "append \(body.held)+\(body.added ?? -1) of \(body.total ?? -1)"
            case let other: "\(other)"
            }
        #expect(found == row.expected)
    }

    static let verdicts: [(held: Int, added: Int?, total: Int?, length: Int, ExpectedBody.Verdict)] = [
        (0, nil, nil, 0, .whole), (0, nil, nil, 7, .whole), (0, 7, nil, 7, .whole),
        (0, 7, nil, 6, .incomplete),
        (0, 7, nil, 8, .tooLong), (0, 0, nil, 0, .whole), (0, 0, nil, 1, .tooLong), (5, 5, 10, 10, .whole),
        (5, 5, 10, 9, .incomplete), (5, 5, 10, 5, .incomplete), (5, 5, 10, 11, .tooLong),
        (5, 2, 10, 7, .incomplete), (5, 2, 10, 8, .tooLong), (5, 2, 10, 10, .tooLong),
        (5, nil, 10, 10, .whole),
        (5, nil, 10, 9, .incomplete), (5, nil, 10, 11, .tooLong), (5, nil, nil, 9, .incomplete),
        (5, 5, nil, 10, .incomplete), (5, .max, .max, 10, .incomplete),
    ]

    @Test(arguments: verdicts) func `a body is whole only at its expected length`(
        held: Int,
        added: Int?,
        total: Int?,
        length: Int,
        verdict: ExpectedBody.Verdict
    ) {
        #expect(ExpectedBody(held: held, added: added, total: total).verdict(on: length) == verdict)
    }

    static let bodies: [(String, added: Int?)] = [
        ("200", nil), ("200 | Content-Length: 5", 5), ("200 | Content-Length: +5", nil),
        ("200 | Content-Length: -5", nil), ("200 | Content-Length: 9223372036854775808", nil),
        ("200 | Content-Length: 5 | CR: bytes 0-9/10", 5), ("206 | CR: bytes 2-3/10", 2),
        ("206 | CR: bytes 2-3/10 | Content-Length: 5", 2), ("206 | Content-Length: 5", 5),
        ("206 | CR: bytes */10", nil),
    ]

    @Test(arguments: bodies) func `the body's length is read from the head`(head: String, added: Int?) {
        let response = Row("", response: head, "").response()
        #expect(ExpectedBody(response) == ExpectedBody(held: 0, added: added, total: nil))
    }
}
