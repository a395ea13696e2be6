// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct ResponseDispositionTests {
    static let tag = "ETag: \"a\""
    static let weak = "ETag: W/\"a\""
    static let ifError = "CC: max-age=60, stale-if-error=100"

    static let others: [Row] = [
        Row("9110 15.2", stored: tag, response: "100", "pass"),
        Row("9110 15.2", stored: tag, response: "103", "pass"),
        Row("9111 4.3.3", stored: tag, response: "200", "store"), Row("9111 3", response: "200", "store"),
        Row("9111 5.2.2.5", stored: tag, response: "200 | CC: no-store", "remove"),
        Row("9111 5.2.2.5", response: "200 | CC: no-store", "pass"),
        Row("9111 4.1", stored: tag, response: "200 | Vary: *", "remove"),
        Row("9111 5.2.1.5", stored: tag, request: "CC: no-store", response: "200", "pass"),
        Row("9111 4.3.3", stored: tag, response: "302", "remove"),
        Row("9110 15.1", stored: tag, response: "404", "store"),
        Row("9111 4.3.3", stored: tag, response: "404 | CC: no-store", "remove"),
        Row("9111 4.3.3", stored: tag, response: "410 | CC: no-store", "remove"),
        Row("9111 4.3.3", stored: tag, response: "401", "pass"),
        Row("9111 4.3.3", stored: tag, response: "403", "pass"),
        Row("6585 4", stored: tag, response: "429", "pass"),
        Row("9111 4.3.3", stored: tag, response: "500", "pass"),
        Row("9111 3", stored: tag, response: "503 | CC: max-age=5", "store"),
        Row("9111 3", stored: tag, request: "POST", response: "200", "pass"),
        Row("9111 3.4", response: "206 | CR: bytes 0-4/10", "part"),
        Row("9111 3.4", stored: "206 | 5-9/10", response: "206 | CR: bytes 0-4/10", "part"),
        Row("9111 3.4", stored: tag, response: "206 | \(tag) | CR: bytes 0-4/10", "pass"),
        Row("9111 3.4", stored: tag, response: "206 | ETag: \"b\" | CR: bytes 0-4/10", "part"),
        Row("9111 3.4", stored: weak, response: "206 | \(weak) | CR: bytes 0-4/10", "part"),
        Row("9110 14.4", stored: tag, response: "206", "pass"),
        Row(
            "9110 14.6",
            stored: tag,
            response: "206 | Content-Type: multipart/byteranges; boundary=x",
            "pass"
        ),
    ]

    static let errors: [Row] = [
        Row("5861 4", stored: ifError, response: "500", now: 61, "stale"),
        Row("5861 4", stored: ifError, response: "502", now: 61, "stale"),
        Row("5861 4", stored: ifError, response: "503", now: 159, "stale"),
        Row("5861 4", stored: ifError, response: "504", now: 160, "pass"),
        Row("5861 4", stored: ifError, response: "503 | CC: max-age=9", now: 61, "stale"),
        Row("5861 4", stored: ifError, response: "505", now: 61, "pass"),
        Row("5861 4", stored: ifError, response: "404", now: 61, "store"),
        Row("5861 4", stored: ifError, response: "403", now: 61, "pass"),
        Row("5861 4", stored: ifError, request: "HEAD", response: "503", now: 61, "stale"),
        Row("5861 4", stored: ifError, request: "POST", response: "503", now: 61, "pass"),
        Row("5861 4", stored: ifError, request: "Range: bytes=0-1", response: "503", now: 61, "stale"),
        Row("5861 4", stored: "206 | 0-4/10 | \(ifError)", response: "503", now: 61, "pass"),
        Row("5861 4", stored: "\(ifError), must-revalidate", response: "503", now: 61, "pass"),
        Row("5861 4", stored: "\(ifError), no-cache", response: "503", now: 61, "pass"),
        Row("5861 4", stored: "CC: max-age=60, stale-if-error", response: "503", now: 61, "pass"),
        Row("5861 4", stored: "CC: max-age=60", response: "503", now: 61, "pass"),
        Row(
            "5861 4",
            stored: "CC: max-age=60",
            request: "CC: stale-if-error=9",
            response: "503",
            now: 61,
            "stale"
        ),
        Row("5861 4", stored: ifError, request: "CC: stale-if-error=9", response: "503", now: 100, "stale"),
        Row("9111 5.2.1.4", stored: ifError, request: "CC: no-cache", response: "503", now: 61, "pass"),
        Row("9111 5.4", stored: ifError, request: "Pragma: no-cache", response: "503", now: 61, "pass"),
        Row("9111 5.2.1.4", stored: ifError, request: "CC: max-age=0", response: "503", now: 61, "stale"),
        Row(
            "5861 4",
            stored: ifError,
            request: "CC: no-cache, stale-if-error=9",
            response: "503",
            now: 61,
            "stale"
        ),
        Row(
            "5861 4",
            stored: ifError,
            request: "CC: no-cache, stale-if-error=9",
            response: "503",
            now: 70,
            "pass"
        ),
        // The stored response is fresh, but the request was forwarded all the same.
        Row("9111 5.2.1.4", stored: "CC: max-age=60", response: "503", now: 1, "pass"),
        Row("9111 5.2.1.4", stored: ifError, response: "503", now: 1, "stale"),
    ]

    static let notModified: [Row] = [
        Row("9111 4.3.4", stored: tag, response: "304 | \(tag)", "renewed 200"),
        Row("9111 4.3.4", stored: weak, response: "304 | \(weak)", "renewed 200"),
        Row("9111 4.3.4", stored: weak, response: "304 | \(tag)", "renewed 200"),
        Row("9111 4.3.4", stored: tag, response: "304 | \(weak)", "renewed 200"),
        Row("9111 4.3.4", stored: tag, response: "304 | ETag: \"b\"", "refetch"),
        Row("9111 4.3.4", stored: tag, response: "304", "renewed 200"),
        Row("9111 4.3.4", stored: tag, request: "INM: \"b\"", response: "304", "refetch"),
        Row("9111 4.3.2", stored: tag, request: "INM: \"b\"", response: "304 | ETag: \"b\"", "pass"),
        Row("9111 4.3.2", stored: tag, request: "INM: \"b\"", response: "304 | ETag: \"c\"", "refetch"),
        Row("9111 4.3.2", stored: tag, request: "INM: \"a\"", response: "304 | \(tag)", "renewed 304"),
        Row("9111 4.3.2", stored: tag, request: "INM: \"b\"", response: "304 | \(tag)", "renewed 200"),
        Row("9110 13.1.2", stored: tag, request: "INM: *", response: "304", "pass"),
        Row("9111 4.3.4", stored: "LM: @-9", response: "304 | LM: @-9", "renewed 200"),
        Row("9111 4.3.4", stored: "LM: @-9", response: "304 | LM: @-8", "refetch"),
        Row("9111 4.3.4", stored: "LM: @-9", response: "304", "renewed 200"),
        // The 304 may refer to the caller's tag.
        Row("9111 4.3.4", stored: "LM: @-9", request: "INM: \"b\"", response: "304", "refetch"),
        Row("9111 4.3.4", stored: tag, response: "304 | LM: @-9", "refetch"),
        Row("9111 4.3.4", stored: "\(tag) | LM: @-9", response: "304 | LM: @-9", "renewed 200"),
        Row("9111 4.3.4", stored: "\(tag) | LM: @-9", response: "304 | ETag: \"b\" | LM: @-9", "refetch"),
        Row("9111 4.3.4", stored: "Date: @0 | LM: @-9", response: "304 | \(tag) | LM: @-9", "renewed 200"),
        Row("9110 8.8.2.2", stored: "Date: @0 | LM: @0", response: "304 | \(tag) | LM: @0", "refetch"),
        Row("9111 4.3.4", stored: "LM: @-9", response: "304 | \(weak)", "refetch"),
        Row("9111 4.3.4", stored: "200", response: "304", "pass"), Row("9111 4.3.4", response: "304", "pass"),
        Row("9110 13.2.1", stored: "404 | \(tag)", response: "304 | \(tag)", "pass"),
        Row("9111 4.3.3", stored: tag, request: "Range: bytes=0-1", response: "304 | \(tag)", "renewed 206"),
        Row("9111 5.2.2.5", stored: tag, response: "304 | \(tag) | CC: no-store", "refetch"),
        Row(
            "9111 5.2.2.3",
            stored: tag,
            response: "304 | \(tag) | CC: no-store, must-understand",
            "renewed 200"
        ),
    ]

    static let heads: [Row] = [
        Row("9111 4.3.5", stored: tag, request: "HEAD", response: "200 | \(tag)", "renewed 200"),
        Row("9111 4.3.5", stored: tag, request: "HEAD", response: "200 | ETag: \"b\"", "remove"),
        Row("9111 5.2.1.5", stored: tag, request: "HEAD | CC: no-store", response: "200 | \(tag)", "pass"),
        Row("9111 4.3.5", stored: "200", request: "HEAD", response: "200 | \(tag)", "remove"),
        Row("9111 4.3.5", stored: tag, request: "HEAD", response: "200", "renewed 200"),
        Row("9111 4.3.5", stored: tag, request: "HEAD", response: "200 | Content-Length: 10", "renewed 200"),
        Row(
            "9111 4.3.5",
            stored: tag,
            request: "HEAD",
            response: "200 | \(tag) | Content-Length: 11",
            "remove"
        ),
        Row(
            "9111 4.3.5",
            stored: "\(tag) | Content-Length: 10",
            request: "HEAD",
            response: "200 | \(tag) | Content-Length: 10",
            "renewed 200"
        ),
        Row("9111 4.3.5", stored: "LM: @-9", request: "HEAD", response: "200 | LM: @-9", "renewed 200"),
        Row("9111 4.3.5", stored: "LM: @-9", request: "HEAD", response: "200 | LM: @-8", "remove"),
        Row(
            "9111 4.3.5",
            stored: "\(tag) | LM: @-9",
            request: "HEAD",
            response: "200 | \(tag) | LM: @-8",
            "remove"
        ),
        Row("9111 4.3.5", stored: tag, request: "HEAD", response: "404", "pass"),
        Row("9111 4.3.5", request: "HEAD", response: "200", "pass"),
        Row("9111 4.3.5", stored: "206 | 0-4/10 | \(tag)", request: "HEAD", response: "200 | \(tag)", "pass"),
        Row("9111 5.2.2.5", stored: tag, request: "HEAD", response: "200 | CC: no-store", "remove"),
        Row("9111 4.3.4", stored: tag, request: "HEAD", response: "304 | \(tag)", "renewed 200"),
    ]

    @Test(arguments: others + errors + notModified + heads)
    func `a response is stored, passed on or replaced as the RFC says`(_ row: Row) throws {
        let policy = HTTPCachePolicy()
        let (request, stored) = (try row.request(), try row.storedResponse())
        let forwarded = policy.forwarded(request, .stale, validating: stored, mode: .standard)
        let reception = policy.receive(
            row.response(),
            to: request,
            forwarded: forwarded,
            stored: stored,
            requested: row.moment,
            received: row.moment
        )
        let found =
            switch reception {
            case .store(.complete): "store"
            case .store(.part): "part"
            case .store(.not): "nothing"
            case .renewed(_, let answer): "renewed \(answer.status)"
            case .pass(removes: true): "remove"
            case .pass(removes: false): "pass"
            case .stale: "stale"
            case .refetch: "refetch"
            }
        #expect(found == row.expected)
    }

    static let renewals: [Row] = [
        Row(
            "9111 3.2",
            stored: "\(tag) | X: a",
            response: "\(tag) | Date: @5 | X: b",
            "Date: @5 | \(tag) | X: b"
        ),
        Row(
            "9111 3.2",
            stored: "\(tag) | X: a",
            response: "Date: @5 | Y: b",
            "Date: @5 | \(tag) | X: a | Y: b"
        ),
        Row(
            "9111 3.2",
            stored: "\(tag) | X: a | X: b",
            response: "Date: @5 | x: c",
            "Date: @5 | \(tag) | x: c"
        ),
        Row(
            "9111 3.2",
            stored: "\(tag) | X: a",
            response: "Date: @5 | X: b | X: c",
            "Date: @5 | \(tag) | X: b | X: c"
        ),
        Row(
            "9111 3.2",
            stored: "\(tag) | Content-Length: 10",
            response: "Date: @5 | Content-Length: 0",
            "Content-Length: 10 | Date: @5 | \(tag)"
        ),
        Row(
            "9111 3.2",
            stored: "\(tag) | Content-Encoding: br",
            response: "Date: @5 | Content-Encoding: gzip | CR: bytes 0-1/2",
            "Content-Encoding: br | Date: @5 | \(tag)"
        ),
        Row(
            "9111 3.2",
            stored: "\(tag) | Content-Type: a/b",
            response: "Date: @5 | Content-Type: c/d",
            "Content-Type: c/d | Date: @5 | \(tag)"
        ),
        Row(
            "9111 3.2",
            stored: "\(tag) | Set-Cookie: a=a",
            response: "Date: @5 | Set-Cookie: a=b | Connection: y | Y: z",
            "Date: @5 | \(tag) | Set-Cookie: a=b"
        ),
        Row(
            "9111 3.2",
            stored: "\(tag) | CC: max-age=1, public",
            response: "Date: @5 | CC: max-age=2",
            "CC: max-age=2 | Date: @5 | \(tag)"
        ),
        // A server that compresses responses sends the strong tag of the uncompressed one.
        Row("9111 4.3.4", stored: weak, response: "Date: @5 | \(tag)", "Date: @5 | \(weak)"),
        Row(
            "9111 3.2",
            stored: "\(tag) | LM: @-9",
            response: "Date: @5 | \(tag) | LM: @-8",
            "Date: @5 | \(tag) | LM: @-8"
        ),
        Row(
            "9111 3.2",
            stored: "\(tag) | Expires: @1",
            response: "Date: @5 | Expires: @9",
            "Date: @5 | \(tag) | Expires: @9"
        ),
        Row("9111 4.2.3", stored: "\(tag) | Age: 7", response: "Date: @5", "Date: @5 | \(tag)"),
        Row(
            "9111 4.2.3",
            stored: "\(tag) | Age: 7",
            response: "Date: @5 | Age: 3",
            "Age: 3 | Date: @5 | \(tag)"
        ),
        Row("9110 6.6.1", stored: "\(tag) | Date: @0", response: "304", "Date: @9 | \(tag)"),
    ]

    @Test(arguments: renewals) func `a 304 updates the stored fields`(_ row: Row) throws {
        let policy = HTTPCachePolicy()
        let (request, stored) = (try row.request(), try #require(try row.storedResponse()))
        let reception = policy.receive(
            row.response(304),
            to: request,
            forwarded: policy.forwarded(request, .stale, validating: stored, mode: .standard),
            stored: stored,
            requested: Row.begin.adding(8),
            received: Row.begin.adding(9)
        )
        guard case .renewed(let renewed, _) = reception else {
            Issue.record("\(reception)")
            return
        }
        #expect(Row.text(renewed.fields) == row.expected)
        #expect(renewed.body == stored.body)
        #expect(renewed.requested == Row.begin.adding(8))
        #expect(renewed.received == Row.begin.adding(9))
    }

    @Test func `a renewed response has the age of the 304`() throws {
        let stored = try Row.stored("\(Self.tag) | CC: max-age=60 | Age: 50 | Date: @-50")
        let (later, now) = (Row.begin.adding(100), Row.begin.adding(105))
        // The 304 was in transit for 100 seconds and was 20 seconds old before.
        let aged = stored.renewed(
            by: HTTPResponse(304, ["Age": "20"]),
            requested: Row.begin,
            received: later
        )
        #expect(HTTPCachePolicy().freshness(of: aged, now: now).age == 125)
        let direct = stored.renewed(by: HTTPResponse(304), requested: later, received: later)
        #expect(HTTPCachePolicy().freshness(of: direct, now: now).remaining == 55)
    }
}
