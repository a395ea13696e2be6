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

    @Test(arguments: requests) func `how a broken download is continued`(_ row: Row) throws {
        let stored = try #require(try row.storedResponse())
        #expect(stored.resumingFields.map(Row.text) ?? "nil" == row.expected)
    }

    static let responses: [Row] = [
        Row("9110 15.3.7", stored: "0-4/10 | \(tag)", response: "206 | CR: bytes 5-9/10", "append"),
        Row("9110 15.3.7", stored: "0-4/10 | \(tag)", response: "206 | CR: bytes 5-6/10", "append"),
        Row("9110 15.3.7", stored: "0-4/* | \(tag)", response: "206 | CR: bytes 5-9/10", "append"),
        Row("9110 15.3.7", stored: "0-4/10 | \(tag)", response: "206 | \(tag) | CR: bytes 5-9/*", "append"),
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
            stored: "0-4/10 | \(dated)",
            response: "206 | LM: @-9 | CR: bytes 5-9/10",
            "append"
        ),
        Row(
            "9110 15.3.7.3",
            stored: "0-4/10 | \(dated)",
            response: "206 | LM: @-8 | CR: bytes 5-9/10",
            "restart"
        ),
        Row(
            "9110 15.3.7.3",
            stored: "0-4/10 | \(dated)",
            response: "206 | \(tag) | CR: bytes 5-9/10",
            "restart"
        ),
        Row("9110 14.4", stored: "0-4/10 | \(tag)", response: "206 | CR: bytes 4-9/10", "restart"),
        Row("9110 14.4", stored: "0-4/10 | \(tag)", response: "206 | CR: bytes 6-9/10", "restart"),
        Row("9110 14.4", stored: "0-4/10 | \(tag)", response: "206 | CR: bytes 5-9/11", "restart"),
        Row("9110 14.4", stored: "0-4/10 | \(tag)", response: "206 | \(tag)", "restart"),
        Row("9110 13.1.5", stored: "0-4/10 | \(tag)", response: "200 | \(tag)", "replace"),
        Row("9110 15.5.17", stored: "0-9/10 | \(tag)", response: "416 | CR: bytes */10", "complete"),
        Row("9110 15.5.17", stored: "0-4/10 | \(tag)", response: "416 | CR: bytes */5", "restart"),
        Row("9110 15.5.17", stored: "0-4/5 | \(tag)", response: "416 | CR: bytes */4", "restart"),
        Row("9110 15.5.17", stored: "0-4/* | \(tag)", response: "416 | CR: bytes */5", "restart"),
        Row("9110 15.5.17", stored: "0-4/10 | \(tag)", response: "416", "restart"),
        Row("9110 15.6.4", stored: "0-4/10 | \(tag)", response: "503", "unrelated"),
        Row("9110 15.5.5", stored: "0-4/10 | \(tag)", response: "404", "unrelated"),
        Row("9110 15.3.7", stored: "200 | \(tag)", response: "200", "complete"),
    ]

    @Test(arguments: responses) func `what the response to it means`(_ row: Row) throws {
        let stored = try #require(try row.storedResponse())
        #expect("\(stored.resumption(by: row.response(), received: row.moment))" == row.expected)
    }

    static let combinations: [Row] = [
        Row("9111 3.4", stored: "0-4/10 | \(tag)", response: "\(tag) | CR: bytes 5-9/10", "200 10"),
        Row("9111 3.4", stored: "5-9/10 | \(tag)", response: "\(tag) | CR: bytes 0-4/10", "200 10"),
        Row("9111 3.4", stored: "0-6/10 | \(tag)", response: "\(tag) | CR: bytes 3-9/10", "200 10"),
        Row("9111 3.4", stored: "0-4/10 | \(tag)", response: "\(tag) | CR: bytes 5-7/10", "206 bytes 0-7/10"),
        Row("9111 3.4", stored: "2-4/10 | \(tag)", response: "\(tag) | CR: bytes 5-9/10", "206 bytes 2-9/10"),
        Row("9111 3.4", stored: "0-8/10 | \(tag)", response: "\(tag) | CR: bytes 2-4/10", "206 bytes 0-8/10"),
        Row("9111 3.4", stored: "0-4/* | \(tag)", response: "\(tag) | CR: bytes 5-9/*", "206 bytes 0-9/*"),
        Row("9111 3.4", stored: "0-4/* | \(tag)", response: "\(tag) | CR: bytes 5-9/10", "200 10"),
        Row("9111 3.4", stored: "0-4/10 | \(tag)", response: "\(tag) | CR: bytes 6-9/10", "nil"),
        Row("9111 3.4", stored: "6-9/10 | \(tag)", response: "\(tag) | CR: bytes 0-4/10", "nil"),
        Row("9111 3.4", stored: "0-4/10 | \(tag)", response: "\(tag) | CR: bytes 5-9/11", "nil"),
        Row("9111 3.4", stored: "0-8/* | \(tag)", response: "\(tag) | CR: bytes 5-6/7", "nil"),
        Row("9110 15.3.7.3", stored: "0-4/10 | \(tag)", response: "ETag: \"b\" | CR: bytes 5-9/10", "nil"),
        Row("9110 15.3.7.3", stored: "0-4/10 | \(weak)", response: "\(weak) | CR: bytes 5-9/10", "nil"),
        Row("9110 15.3.7.3", stored: "0-4/10 | \(tag)", response: "CR: bytes 5-9/10", "nil"),
        Row("9110 15.3.7.3", stored: "0-4/10", response: "CR: bytes 5-9/10", "nil"),
        Row("9110 8.8.2.2", stored: "0-4/10 | \(dated)", response: "LM: @-9 | CR: bytes 5-9/10", "200 10"),
        Row(
            "9110 8.8.2.2",
            stored: "0-4/10 | Date: @0 | LM: @0",
            response: "LM: @0 | CR: bytes 5-9/10",
            "nil"
        ),
        Row("9111 3.4", stored: "0-4/10 | \(tag)", response: "200 | \(tag) | CR: bytes 5-9/10", "nil"),
        Row("9111 3.4", stored: "200 | \(tag)", response: "\(tag) | CR: bytes 5-9/10", "nil"),
        Row("9110 14.4", stored: "0-4/10 | \(tag)", response: tag, "nil"),
    ]

    @Test(arguments: combinations) func `parts that are put together`(_ row: Row) throws {
        let stored = try #require(try row.storedResponse())
        let combined = stored.combined(with: row.response(206), requested: row.moment, received: row.moment)
        let found = combined.map { combined in
            switch combined.body {
            case .complete(let length): "\(combined.status) \(length)"
            case .part: "\(combined.status) \(combined.fields.first("Content-Range") ?? "")"
            }
        }
        #expect(found ?? "nil" == row.expected)
    }

    @Test func `what is put together has the fields of the newer part`() throws {
        let (own, new) = ("0-4/10 | \(Self.tag) | X: a | Y: b", "Date: @5 | X: c")
        let stored = try Row.stored("206 | \(own) | Content-Length: 5 | CR: bytes 0-4/10")
        let response = HTTPResponse(206, Row.fields("\(new) | Content-Length: 5 | CR: bytes 5-9/10"))
        let combined = try #require(
            stored.combined(
                with: response,
                requested: Row.begin,
                received: Row.begin.adding(5),
                wasAsked: true
            )
        )
        #expect(Row.text(combined.fields) == "Content-Length: 10 | Date: @5 | \(Self.tag) | X: c | Y: b")
        #expect(combined.received == Row.begin.adding(5))
    }
}
