// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct AnswerTests {
    static let tag = "ETag: \"a\""
    static let weak = "ETag: W/\"a\""

    static let ranges: [Row] = [
        Row("9110 14.2", stored: "200", "200 0..<10"),
        Row("9110 14.2", stored: "200", request: "Range: bytes=2-4", "206 2..<5 bytes 2-4/10"),
        Row("9110 14.1.2", stored: "200", request: "Range: bytes=5-", "206 5..<10 bytes 5-9/10"),
        Row("9110 14.1.2", stored: "200", request: "Range: bytes=-3", "206 7..<10 bytes 7-9/10"),
        Row("9110 14.1.2", stored: "200", request: "Range: bytes=0-99", "206 0..<10 bytes 0-9/10"),
        Row("9110 14.2", stored: "200", request: "Range: bytes=0-1,3-4", "200 0..<10"),
        Row("9110 14.2", stored: "200", request: "Range: lines=0-1", "200 0..<10"),
        Row("9110 15.5.17", stored: "200", request: "Range: bytes=10-", "416 - bytes */10"),
        Row("9110 14.2", stored: "200", request: "HEAD | Range: bytes=0-1", "200 -"),
        Row("9110 14.2", stored: "404", request: "Range: bytes=0-1", "404 0..<10"),
        Row("9111 3.3", stored: "206 | 2-5/10", "nil"),
        Row("9111 3.3", stored: "200 | 0-5/10", "nil"),
        Row("9111 3.3", stored: "206 | 2-5/10", request: "Range: bytes=2-5", "206 2..<6 bytes 2-5/10"),
        Row("9111 3.3", stored: "206 | 2-5/10", request: "Range: bytes=3-4", "206 3..<5 bytes 3-4/10"),
        Row("9111 3.3", stored: "206 | 2-5/10", request: "Range: bytes=1-4", "nil"),
        Row("9111 3.3", stored: "206 | 2-5/10", request: "Range: bytes=5-6", "nil"),
        Row("9111 3.3", stored: "206 | 2-5/10", request: "Range: bytes=2-", "nil"),
        Row("9111 3.3", stored: "206 | 5-9/10", request: "Range: bytes=6-", "206 6..<10 bytes 6-9/10"),
        Row("9111 3.3", stored: "206 | 5-9/10", request: "Range: bytes=-2", "206 8..<10 bytes 8-9/10"),
        Row("9111 3.3", stored: "206 | 5-9/10", request: "Range: bytes=-6", "nil"),
        Row("9111 3.3", stored: "206 | 5-9/10", request: "Range: bytes=99-", "nil"),
        Row("9111 3.3", stored: "206 | 2-5/10", request: "HEAD", "nil"),
    ]

    static let ifRange: [Row] = [
        Row(
            "9110 13.1.5",
            stored: tag,
            request: "Range: bytes=0-1 | If-Range: \"a\"",
            "206 0..<2 bytes 0-1/10"
        ),
        Row("9110 13.1.5", stored: tag, request: "Range: bytes=0-1 | If-Range: \"b\"", "200 0..<10"),
        Row("9110 13.1.5", stored: weak, request: "Range: bytes=0-1 | If-Range: W/\"a\"", "200 0..<10"),
        Row("9110 13.1.5", stored: weak, request: "Range: bytes=0-1 | If-Range: \"a\"", "200 0..<10"),
        Row("9110 13.1.5", stored: tag, request: "Range: bytes=0-1 | If-Range: W/\"a\"", "200 0..<10"),
        Row("9110 13.1.5", stored: "200", request: "Range: bytes=0-1 | If-Range: \"a\"", "200 0..<10"),
        Row("9110 13.1.5", stored: "200", request: "Range: bytes=0-1 | If-Range: @0", "200 0..<10"),
        Row(
            "9110 8.8.2.2",
            stored: "Date: @0 | LM: @-9",
            request: "Range: bytes=0-1 | If-Range: @-9",
            "206 0..<2 bytes 0-1/10"
        ),
        Row(
            "9110 8.8.2.2",
            stored: "Date: @0 | LM: @0",
            request: "Range: bytes=0-1 | If-Range: @0",
            "200 0..<10"
        ),
        Row(
            "9110 13.1.5",
            stored: "Date: @0 | LM: @-9",
            request: "Range: bytes=0-1 | If-Range: @-8",
            "200 0..<10"
        ),
        Row("9110 13.1.5", stored: tag, request: "Range: bytes=0-1 | If-Range: x", "200 0..<10"),
        Row(
            "9110 13.1.5",
            stored: "206 | 0-4/10 | \(tag)",
            request: "Range: bytes=0-1 | If-Range: \"b\"",
            "nil"
        ),
        Row("9110 13.1.5", stored: tag, request: "If-Range: \"b\"", "200 0..<10"),
    ]

    static let conditions: [Row] = [
        Row("9110 13.1.2", stored: tag, request: "INM: \"a\"", "304 -"),
        Row("9110 13.1.2", stored: tag, request: "INM: W/\"a\"", "304 -"),
        Row("9110 13.1.2", stored: weak, request: "INM: \"a\"", "304 -"),
        Row("9110 13.1.2", stored: tag, request: "INM: \"x,y\", \"a\"", "304 -"),
        Row("9110 13.1.2", stored: tag, request: "INM: \"x\" | INM: \"a\"", "304 -"),
        Row("9110 13.1.2", stored: tag, request: "INM: *", "304 -"),
        Row("9110 13.1.2", stored: tag, request: "INM: \"b\"", "200 0..<10"),
        Row("9110 8.8.3", stored: tag, request: "INM: \"A\"", "200 0..<10"),
        Row("9110 8.8.3", stored: tag, request: "INM: a", "304 -"),
        Row("9110 13.1.2", stored: "200", request: "INM: \"a\"", "200 0..<10"),
        Row("9111 4.3.2", stored: "\(tag) | LM: @-9", request: "INM: \"b\" | IMS: @0", "200 0..<10"),
        Row("9111 4.3.2", stored: "\(tag) | LM: @-9", request: "INM: \"a\" | IMS: @-99", "304 -"),
        Row("9110 13.1.3", stored: "LM: @-9", request: "IMS: @-9", "304 -"),
        Row("9110 13.1.3", stored: "LM: @-9", request: "IMS: @-8", "304 -"),
        Row("9110 13.1.3", stored: "LM: @-9", request: "IMS: @-10", "200 0..<10"),
        Row("9110 13.1.3", stored: "LM: @-9", request: "IMS: x", "200 0..<10"),
        Row("9110 13.1.3", stored: "LM: @-9", request: "HEAD | IMS: @-9", "304 -"),
        Row("9110 5.6.7", stored: "LM: @-9", request: "IMS: Tuesday, 14-Nov-23 22:13:11 GMT", "304 -"),
        Row("9111 4.3.2", stored: "Date: @-5", request: "IMS: @-5", "304 -"),
        Row("9111 4.3.2", stored: "Date: @-5", request: "IMS: @-6", "200 0..<10"),
        Row("9111 4.3.2", stored: "200", request: "IMS: @0", "304 -"),
        Row("9111 4.3.2", stored: "200", request: "IMS: @-1", "200 0..<10"),
        Row("9110 13.2.1", stored: "404 | \(tag)", request: "INM: \"a\"", "404 0..<10"),
        Row("9110 13.2.2", stored: tag, request: "INM: \"a\" | Range: bytes=0-1", "304 -"),
        Row("9110 13.2.2", stored: tag, request: "INM: \"b\" | Range: bytes=0-1", "206 0..<2 bytes 0-1/10"),
    ]

    @Test(arguments: ranges + ifRange + conditions) func `the answer fits the request`(_ row: Row) throws {
        let stored = try #require(try row.storedResponse())
        let answer = HTTPCachePolicy().answer(try row.request(), from: stored, now: row.moment)
        let range = answer?.fields.first("Content-Range").map { " " + $0 } ?? ""
        let found = answer.map { "\($0.status) \($0.bytes.map { "\($0)" } ?? "-")\(range)" }
        #expect(found ?? "nil" == row.expected)
    }

    static let fields: [Row] = [
        Row("9110 6.6.1", stored: "200", now: 3, "Age: 3 | Date: @0"),
        Row("9111 5.1", stored: "Age: 4 | Date: @0", now: 3, "Age: 7 | Date: @0"),
        Row("9111 3.1", stored: "Date: @0 | X: a | X: b", "Age: 0 | Date: @0 | X: a | X: b"),
        Row(
            "9111 5.2.2.4",
            stored: "Date: @0 | CC: no-cache=\"x, Y\" | X: a | Y: b | Z: c",
            "Age: 0 | CC: no-cache=\"x, Y\" | Date: @0 | Z: c"
        ),
        Row(
            "9110 15.4.5",
            stored: "Date: @0 | Content-Length: 10 | Content-Encoding: br | ETag: \"a\" | Vary: b",
            request: "INM: \"a\"",
            "Age: 0 | Date: @0 | ETag: \"a\" | Vary: b"
        ),
        Row(
            "9110 14.4",
            stored: "Date: @0 | Content-Length: 10",
            request: "Range: bytes=1-3",
            "Age: 0 | Content-Length: 3 | CR: bytes 1-3/10 | Date: @0"
        ),
        Row(
            "9110 9.3.2",
            stored: "Date: @0 | Content-Length: 10",
            request: "HEAD",
            "Age: 0 | Content-Length: 10 | Date: @0"
        ),
    ]

    @Test(arguments: fields) func `an answer has the right fields`(_ row: Row) throws {
        let stored = try #require(try row.storedResponse())
        let answer = HTTPCachePolicy().answer(try row.request(), from: stored, now: row.moment)
        #expect(answer.map { Row.text($0.fields) } == row.expected)
    }

    @Test func `fields that need validation are answered after it`() throws {
        let stored = try Row.stored("CC: no-cache=x | X: a")
        let answer = HTTPCachePolicy().answer(
            try Row("", "").request(),
            from: stored,
            now: Row.begin,
            isValidated: true
        )
        #expect(answer?.fields.first("X") == "a")
    }
}
