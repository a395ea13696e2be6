// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct DecisionTests {
    static let minute = "Cache-Control: max-age=60"
    static let must = "Cache-Control: max-age=60, must-revalidate"
    static let behind = "Cache-Control: max-age=60, stale-while-revalidate=9"
    static let immutable = "Cache-Control: max-age=60, immutable"

    static let ofRequests: [Row] = [
        Row("9111 4", "uri-miss"), Row("9111 4", request: "HEAD", "uri-miss"),
        Row("9111 4", stored: minute, request: "POST", "method"),
        Row("9111 4", stored: minute, request: "PUT", "method"),
        Row("9111 4", stored: minute, request: "OPTIONS", "method"),
        Row("9110 9.1", stored: minute, request: "X-GET", "method"),
        Row("9111 4", stored: minute, request: "HEAD", "200"),
        Row("9111 4", stored: "404 | \(minute)", "404"), Row("9111 4", stored: "302 | \(minute)", "302"),
        Row("9111 5.2.1.1", stored: minute, request: "Cache-Control: max-age=10", now: 10, "200"),
        Row("9111 5.2.1.1", stored: minute, request: "Cache-Control: max-age=10", now: 11, "request"),
        Row("9111 5.2.1.1", stored: minute, request: "Cache-Control: max-age=0", "request"),
        Row("9111 5.2.1.1", stored: minute, request: "Cache-Control: max-age=x", "request"),
        Row("9111 5.2.1.1", stored: minute, request: "Cache-Control: max-age=99", now: 61, "stale"),
        Row("9111 5.2.1.1", stored: minute, request: "Cache-Control: max-age=10, max-stale", now: 61, "stale"),
        Row("9111 5.2.1.1", stored: minute, request: "Cache-Control: max-age=99, max-stale", now: 61, "200"),
        Row("9111 5.2.1.2", stored: minute, request: "Cache-Control: max-stale", now: 999, "200"),
        Row("9111 5.2.1.2", stored: minute, request: "Cache-Control: max-stale=5", now: 65, "200"),
        Row("9111 5.2.1.2", stored: minute, request: "Cache-Control: max-stale=5", now: 66, "stale"),
        Row("9111 5.2.1.2", stored: minute, request: "Cache-Control: max-stale=\"5\"", now: 65, "200"),
        Row("9111 5.2.1.2", stored: minute, request: "Cache-Control: max-stale=x", now: 61, "stale"),
        Row("9111 5.2.1.3", stored: minute, request: "Cache-Control: min-fresh=10", now: 50, "200"),
        Row("9111 5.2.1.3", stored: minute, request: "Cache-Control: min-fresh=10", now: 51, "request"),
        Row("9111 5.2.1.3", stored: minute, request: "Cache-Control: min-fresh=x", "request"),
        Row("9111 5.2.1.4", stored: minute, request: "Cache-Control: no-cache", "request"),
        Row("9111 5.2.1.4", stored: minute, request: "Cache-Control: NO-CACHE", "request"),
        Row("9110 5.3", stored: minute, request: "Cache-Control: max-stale | Cache-Control: no-cache", "request"),
        Row("9111 5.2", stored: minute, request: "Cache-Control: x=\"no-cache\"", "200"),
        Row("9111 5.2.1.4", stored: minute, request: "Cache-Control: no-cache", now: 61, "stale"),
        Row("9111 5.2.1.5", stored: minute, request: "Cache-Control: no-store", "bypass"),
        Row("9111 5.2.1.7", stored: minute, request: "Cache-Control: only-if-cached", "200"),
        Row("9111 5.2.1.7", stored: minute, request: "Cache-Control: only-if-cached", now: 61, "504"),
        Row("9111 5.2.1.7", request: "Cache-Control: only-if-cached", "504"),
        Row("9111 5.2.1.7", stored: minute, request: "POST | Cache-Control: only-if-cached", "504"),
        Row("9111 5.2.1.7", stored: behind, request: "Cache-Control: only-if-cached", now: 61, "200"),
        Row("9111 5.2.3", stored: minute, request: "Cache-Control: community=\"UCI\"", "200"),
        Row("9111 5.4", stored: minute, request: "Pragma: no-cache", "request"),
        Row("9111 5.4", stored: minute, request: "Pragma: x, No-Cache", "request"),
        Row("9111 5.4", stored: minute, request: "Pragma: no-cache | Cache-Control: max-age=60", "200"),
        Row("9111 4.3.2", stored: minute, request: "If-Match: \"a\"", "bypass"),
        Row("9111 4.3.2", stored: minute, request: "If-Unmodified-Since: @0", "bypass"),
    ]

    static let ofResponses: [Row] = [
        Row("9111 4.2", stored: minute, now: 59, "200"), Row("9111 4.2", stored: minute, now: 60, "stale"),
        Row("9111 5.2.2.1", stored: "Cache-Control: max-age=0", "stale"), Row("9111 4.2.2", stored: "200", "stale"),
        Row("9111 5.2.2.2", stored: must, now: 59, "200"),
        Row("9111 5.2.2.2", stored: must, request: "Cache-Control: max-stale", now: 61, "stale"),
        Row("9111 5.2.2.4", stored: "Cache-Control: max-age=60, no-cache", "stale"),
        Row("9111 5.2.2.4", stored: "Cache-Control: max-age=60 | Cache-Control: No-Cache", "stale"),
        Row("9111 5.2.2.4", stored: "Cache-Control: max-age=60, no-cache=\"a\"", "200"),
        Row(
            "9111 5.2.2.4", stored: "Cache-Control: no-cache", request: "Cache-Control: max-stale", now: 1,
            "stale"),
        Row("9111 5.2.2.7", stored: "Cache-Control: max-age=60, private", "200"),
        Row("9111 5.2.2.7", stored: "Cache-Control: max-age=60, private=\"a\"", "200"),
        Row(
            "9111 5.2.2.8", stored: "Cache-Control: max-age=60, proxy-revalidate",
            request: "Cache-Control: max-stale", now: 61, "200"),
        Row("9111 5.2.2.10", stored: "Cache-Control: max-age=60, s-maxage=1", now: 5, "200"),
        Row("5861 3", stored: behind, now: 59, "200"), Row("5861 3", stored: behind, now: 60, "behind"),
        Row("5861 3", stored: behind, now: 68, "behind"), Row("5861 3", stored: behind, now: 69, "stale"),
        Row("5861 3", stored: "\(behind), must-revalidate", now: 61, "stale"),
        Row("5861 3", stored: "\(behind), no-cache", now: 61, "stale"),
        Row("5861 3", stored: "\(minute) | Cache-Control: stale-while-revalidate=9", now: 61, "behind"),
        Row("5861 3", stored: "\(minute), stale-while-revalidate", now: 61, "stale"),
        Row("5861 3", stored: behind, request: "Cache-Control: max-age=0", now: 61, "stale"),
        Row("9111 3.3", stored: "206 | 0-4/10 | \(minute)", "partial"),
        Row("9111 3.3", stored: "206 | 0-4/10 | \(minute)", request: "HEAD", "partial"),
        Row("9111 3.3", stored: "206 | 0-4/10 | \(minute)", request: "Range: bytes=1-2", "206"),
        Row("9111 3.3", stored: "206 | 0-4/10 | \(minute)", request: "Range: bytes=3-5", "partial"),
        Row("9111 3.3", stored: "206 | 0-4/* | \(minute)", request: "Range: bytes=-2", "partial"),
        Row("9111 3.3", stored: "206 | 0-4/10 | \(minute)", request: "Range: bytes=1-2", now: 60, "stale"),
    ]

    static let ofModes: [Row] = [
        Row("9111 4.2", stored: minute, now: 59, mode: .onlyIfCached, "200"),
        Row("9111 5.2.1.7", stored: minute, now: 60, mode: .onlyIfCached, "504"),
        Row("9111 5.2.1.7", mode: .onlyIfCached, "504"),
        Row("5861 3", stored: behind, now: 60, mode: .onlyIfCached, "200"),
        Row("9111 4.2.4", stored: minute, now: 999, mode: .offline, "200"),
        Row("9111 4.2.4", stored: minute, now: 999, mode: .cacheFirst, "200"),
        Row("9111 4", mode: .offline, "504"), Row("9111 4", mode: .cacheFirst, "uri-miss"),
        Row("9111 5.2.2.2", stored: must, now: 60, mode: .offline, "504"),
        Row("9111 5.2.2.2", stored: must, now: 60, mode: .cacheFirst, "stale"),
        Row("9111 5.2.2.4", stored: "Cache-Control: no-cache", mode: .offline, "504"),
        Row("9111 5.2.2.4", stored: "Cache-Control: no-cache", mode: .cacheFirst, "stale"),
        Row("9111 3.3", stored: "206 | 0-4/10", mode: .offline, "504"),
        Row("9111 5.2.1.1", stored: minute, request: "Cache-Control: max-age=1", now: 9, mode: .offline, "504"),
        Row("9111 5.2.1.4", stored: minute, mode: .reload, "request"),
        Row("9111 4.2", stored: minute, now: 60, mode: .reload, "stale"),
        Row("9111 4", mode: .reload, "uri-miss"), Row("9111 4.3", stored: minute, mode: .revalidate, "request"),
        Row("5861 3", stored: behind, now: 60, mode: .revalidate, "stale"),
        Row("8246 2", stored: immutable, now: 59, mode: .revalidate, "200"),
        Row("8246 2", stored: immutable, now: 60, mode: .revalidate, "stale"),
        Row("8246 2", stored: immutable, mode: .reload, "request"), Row("8246 2", stored: immutable, now: 60, "stale"),
        Row("8246 2", stored: "\(immutable), no-cache", mode: .revalidate, "stale"),
        Row("8246 2", stored: "\(minute), immutable=\"x\"", now: 59, mode: .revalidate, "200"),
        Row("8246 3", stored: immutable, request: "http://a/x", mode: .revalidate, "request"),
    ]

    @Test(arguments: ofRequests + ofResponses + ofModes) func `what is done about a request`(_ row: Row) throws {
        let decision = HTTPCachePolicy().decide(
            try row.request(), stored: try row.storedResponse(), mode: row.mode, now: row.moment)
        let found =
            switch decision {
            case .answer(let answer): String(answer.status)
            case .answerAndRevalidate: "behind"
            case .forward(let forwarded): forwarded.reason.rawValue
            case .unavailable: "504"
            }
        #expect(found == row.expected)
    }

    @Test func `a miss by Vary is another one than by URL`() throws {
        let request = try Row("", "").request()
        let decision = HTTPCachePolicy().decide(
            request, stored: nil, hasVariants: true, mode: .standard, now: Row.begin)
        #expect(decision == .forward(ForwardedRequest(request: request, reason: .varyMiss, validates: false)))
    }

    @Test func `what is answered while it is validated is validated by its tag`() throws {
        let stored = try Row.stored("\(Self.behind) | ETag: \"a\"")
        let request = try Row("", "").request()
        guard
            case .answerAndRevalidate(let answer, let forwarded) = HTTPCachePolicy().decide(
                request, stored: stored, mode: .standard, now: Row.begin.adding(60))
        else {
            Issue.record("not answered")
            return
        }
        #expect(answer.bytes == 0..<10)
        #expect(forwarded.validates)
        #expect(forwarded.request.fields == ["If-None-Match": "\"a\""])
    }

    static let forwarded: [Row] = [
        Row("9111 4.3.1", stored: "ETag: \"a\"", "? If-None-Match: \"a\""),
        Row("9111 4.3.1", stored: "ETag: W/\"a\"", "? If-None-Match: W/\"a\""),
        Row("9110 8.8.3", stored: "ETag: a", "? If-None-Match: a"),
        Row("9111 4.3.1", stored: "Last-Modified: @-9", "? If-Modified-Since: @-9"),
        Row(
            "9110 13.1.3", stored: "ETag: \"a\" | Last-Modified: @-9",
            "? If-Modified-Since: @-9 | If-None-Match: \"a\""),
        Row("9110 8.8.2", stored: "Last-Modified: x", ""), Row("9111 4.3.1", stored: "200", ""),
        Row("9111 4.3.1", stored: "200", request: "Range: bytes=0-1", "Range: bytes=0-1"),
        Row("9110 13.1.5", stored: "ETag: \"a\"", request: "Range: bytes=0-1 | If-Range: \"a\"", "? If-None-Match: \"a\""),
        Row("9111 3.3", stored: "206 | 0-4/10 | ETag: \"a\"", request: "Range: bytes=6-", "Range: bytes=6-"),
        Row("9111 4.3.1", stored: "ETag: \"a\"", request: "If-None-Match: \"b\"", "? If-None-Match: \"b\", \"a\""),
        Row("9111 4.3.1", stored: "ETag: \"a\"", request: "If-None-Match: \"a\"", "? If-None-Match: \"a\""),
        Row("9110 13.1.2", stored: "ETag: \"a\"", request: "If-None-Match: *", "If-None-Match: *"),
        Row("9110 13.1.3", stored: "ETag: \"a\"", request: "If-Modified-Since: @-5", "? If-None-Match: \"a\""),
        Row("9110 13.1.3", stored: "200", request: "If-Modified-Since: @-5", "If-Modified-Since: @-5"),
        Row("9111 4.3.1", stored: "Last-Modified: @-9", request: "If-Modified-Since: @-5", "? If-Modified-Since: @-9"),
        Row("9110 13.2.1", stored: "404 | ETag: \"a\"", ""), Row("9110 13.2.1", stored: "301 | Last-Modified: @-9", ""),
        Row("9110 13.2.1", stored: "203 | ETag: \"a\"", "? If-None-Match: \"a\""),
        Row("9111 4.3.1", stored: "ETag: \"a\"", request: "Accept: b", "? Accept: b | If-None-Match: \"a\""),
        Row(
            "9111 5.2.1.1", stored: "ETag: \"a\"", mode: .revalidate,
            "? Cache-Control: max-age=0 | If-None-Match: \"a\""),
        Row(
            "9111 5.2.1.1", stored: "ETag: \"a\"", request: "Cache-Control: no-cache", mode: .revalidate,
            "? Cache-Control: no-cache | If-None-Match: \"a\""),
        Row("9111 5.2.1.4", stored: "ETag: \"a\"", mode: .reload, "Cache-Control: no-cache"),
        Row(
            "9111 5.2.1.4", stored: "ETag: \"a\"", request: "Cache-Control: max-stale", mode: .reload,
            "Cache-Control: no-cache"),
    ]

    @Test(arguments: forwarded) func `what the origin is asked`(_ row: Row) throws {
        let decision = HTTPCachePolicy().decide(
            try row.request(), stored: try row.storedResponse(), mode: row.mode, now: Row.begin.adding(999_999))
        guard case .forward(let forwarded) = decision else {
            Issue.record("not forwarded")
            return
        }
        #expect((forwarded.validates ? "? " : "") + Row.text(forwarded.request.fields) == row.expected)
    }
}
