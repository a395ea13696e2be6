// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct DecisionTests {
    static let minute = "CC: max-age=60"
    static let must = "CC: max-age=60, must-revalidate"
    static let behind = "CC: max-age=60, stale-while-revalidate=9"
    static let immutable = "CC: max-age=60, immutable"

    static let ofRequests: [Row] = [
        Row("9111 4", "uri-miss"), Row("9111 4", request: "HEAD", "uri-miss"),
        Row("9111 4", stored: minute, request: "POST", "method"),
        Row("9111 4", stored: minute, request: "PUT", "method"),
        Row("9111 4", stored: minute, request: "OPTIONS", "method"),
        Row("9110 9.1", stored: minute, request: "X-GET", "method"),
        Row("9111 4", stored: minute, request: "HEAD", "200"),
        Row("9111 4", stored: "404 | \(minute)", "404"), Row("9111 4", stored: "302 | \(minute)", "302"),
        Row("9111 5.2.1.1", stored: minute, request: "CC: max-age=10", now: 10, "200"),
        Row("9111 5.2.1.1", stored: minute, request: "CC: max-age=10", now: 11, "request"),
        Row("9111 5.2.1.1", stored: minute, request: "CC: max-age=0", "request"),
        Row("9111 5.2.1.1", stored: minute, request: "CC: max-age=x", "request"),
        Row("9111 5.2.1.1", stored: minute, request: "CC: max-age=99", now: 61, "stale"),
        Row("9111 5.2.1.1", stored: minute, request: "CC: max-age=10, max-stale", now: 61, "stale"),
        Row("9111 5.2.1.1", stored: minute, request: "CC: max-age=99, max-stale", now: 61, "200"),
        Row("9111 5.2.1.2", stored: minute, request: "CC: max-stale", now: 999, "200"),
        Row("9111 5.2.1.2", stored: minute, request: "CC: max-stale=5", now: 65, "200"),
        Row("9111 5.2.1.2", stored: minute, request: "CC: max-stale=5", now: 66, "stale"),
        Row("9111 5.2.1.2", stored: minute, request: "CC: max-stale=\"5\"", now: 65, "200"),
        Row("9111 5.2.1.2", stored: minute, request: "CC: max-stale=x", now: 61, "stale"),
        Row("9111 5.2.1.3", stored: minute, request: "CC: min-fresh=10", now: 50, "200"),
        Row("9111 5.2.1.3", stored: minute, request: "CC: min-fresh=10", now: 51, "request"),
        Row("9111 5.2.1.3", stored: minute, request: "CC: min-fresh=x", "request"),
        Row("9111 5.2.1.4", stored: minute, request: "CC: no-cache", "request"),
        Row("9111 5.2.1.4", stored: minute, request: "CC: NO-CACHE", "request"),
        Row("9110 5.3", stored: minute, request: "CC: max-stale | CC: no-cache", "request"),
        Row("9111 5.2", stored: minute, request: "CC: x=\"no-cache\"", "200"),
        Row("9111 5.2.1.4", stored: minute, request: "CC: no-cache", now: 61, "stale"),
        Row("9111 5.2.1.5", stored: minute, request: "CC: no-store", "bypass"),
        Row("9111 5.2.1.7", stored: minute, request: "CC: only-if-cached", "200"),
        Row("9111 5.2.1.7", stored: minute, request: "CC: only-if-cached", now: 61, "504"),
        Row("9111 5.2.1.7", request: "CC: only-if-cached", "504"),
        Row("9111 5.2.1.7", stored: minute, request: "POST | CC: only-if-cached", "504"),
        Row("9111 5.2.1.7", stored: behind, request: "CC: only-if-cached", now: 61, "200"),
        Row("9111 5.2.3", stored: minute, request: "CC: community=\"UCI\"", "200"),
        Row("9111 5.4", stored: minute, request: "Pragma: no-cache", "request"),
        Row("9111 5.4", stored: minute, request: "Pragma: x, No-Cache", "request"),
        Row("9111 5.4", stored: minute, request: "Pragma: no-cache | CC: max-age=60", "200"),
        Row("9111 4.3.2", stored: minute, request: "If-Match: \"a\"", "bypass"),
        Row("9111 4.3.2", stored: minute, request: "If-Unmodified-Since: @0", "bypass"),
    ]

    static let ofResponses: [Row] = [
        Row("9111 4.2", stored: minute, now: 59, "200"), Row("9111 4.2", stored: minute, now: 60, "stale"),
        Row("9111 5.2.2.1", stored: "CC: max-age=0", "stale"), Row("9111 4.2.2", stored: "200", "stale"),
        Row("9111 5.2.2.2", stored: must, now: 59, "200"),
        Row("9111 5.2.2.2", stored: must, request: "CC: max-stale", now: 61, "stale"),
        Row("9111 5.2.2.4", stored: "CC: max-age=60, no-cache", "stale"),
        Row("9111 5.2.2.4", stored: "CC: max-age=60 | CC: No-Cache", "stale"),
        Row("9111 5.2.2.4", stored: "CC: max-age=60, no-cache=\"a\"", "200"),
        Row("9111 5.2.2.4", stored: "CC: no-cache", request: "CC: max-stale", now: 1, "stale"),
        Row("9111 5.2.2.7", stored: "CC: max-age=60, private", "200"),
        Row("9111 5.2.2.7", stored: "CC: max-age=60, private=\"a\"", "200"),
        Row(
            "9111 5.2.2.8",
            stored: "CC: max-age=60, proxy-revalidate",
            request: "CC: max-stale",
            now: 61,
            "200"
        ),
        Row("9111 5.2.2.10", stored: "CC: max-age=60, s-maxage=1", now: 5, "200"),
        Row("5861 3", stored: behind, now: 59, "200"), Row("5861 3", stored: behind, now: 60, "behind"),
        Row("5861 3", stored: behind, now: 68, "behind"), Row("5861 3", stored: behind, now: 69, "stale"),
        Row("5861 3", stored: "\(behind), must-revalidate", now: 61, "stale"),
        Row("5861 3", stored: "\(behind), no-cache", now: 61, "stale"),
        Row("5861 3", stored: "\(minute) | CC: stale-while-revalidate=9", now: 61, "behind"),
        Row("5861 3", stored: "\(minute), stale-while-revalidate", now: 61, "stale"),
        Row("5861 3", stored: behind, request: "CC: max-age=0", now: 61, "stale"),
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
        Row("9111 5.2.2.4", stored: "CC: no-cache", mode: .offline, "504"),
        Row("9111 5.2.2.4", stored: "CC: no-cache", mode: .cacheFirst, "stale"),
        Row("9111 3.3", stored: "206 | 0-4/10", mode: .offline, "504"),
        Row("9111 5.2.1.1", stored: minute, request: "CC: max-age=1", now: 9, mode: .offline, "504"),
        Row("9111 5.2.1.4", stored: minute, mode: .reload, "request"),
        Row("9111 4.2", stored: minute, now: 60, mode: .reload, "stale"),
        Row("9111 4", mode: .reload, "uri-miss"),
        Row("9111 4.3", stored: minute, mode: .revalidate, "request"),
        Row("5861 3", stored: behind, now: 60, mode: .revalidate, "stale"),
        Row("8246 2", stored: immutable, now: 59, mode: .revalidate, "200"),
        Row("8246 2", stored: immutable, now: 60, mode: .revalidate, "stale"),
        Row("8246 2", stored: immutable, mode: .reload, "request"),
        Row("8246 2", stored: immutable, now: 60, "stale"),
        Row("8246 2", stored: "\(immutable), no-cache", mode: .revalidate, "stale"),
        Row("8246 2", stored: "\(minute), immutable=\"x\"", now: 59, mode: .revalidate, "200"),
        Row("8246 3", stored: immutable, request: "http://a/x", mode: .revalidate, "request"),
    ]

    @Test(arguments: ofRequests + ofResponses + ofModes)
    func `each request is answered or forwarded as the RFC says`(_ row: Row) throws {
        let decision = HTTPCachePolicy().decide(
            try row.request(),
            stored: try row.storedResponse(),
            mode: row.mode,
            now: row.moment
        )
        let found =
            switch decision {
            case .answer(let answer): String(answer.status)
            case .answerAndRevalidate: "behind"
            case .forward(let forwarded): forwarded.reason.rawValue
            case .unavailable: "504"
            }
        #expect(found == row.expected)
    }

    @Test func `a Vary miss is distinguished from a URL miss`() throws {
        let request = try Row("", "").request()
        let decision = HTTPCachePolicy().decide(
            request,
            stored: nil,
            hasVariants: true,
            mode: .standard,
            now: Row.begin
        )
        #expect(decision == .forward(ForwardedRequest(request: request, reason: .varyMiss, validates: false)))
    }

    @Test func `a background revalidation of a stale answer uses its ETag`() throws {
        let stored = try Row.stored("\(Self.behind) | ETag: \"a\"")
        let request = try Row("", "").request()
        guard
            case .answerAndRevalidate(let answer, let forwarded) = HTTPCachePolicy().decide(
                request,
                stored: stored,
                mode: .standard,
                now: Row.begin.adding(60)
            )
        else {
            Issue.record("not answered")
            return
        }
        #expect(answer.bytes == 0..<10)
        #expect(forwarded.validates)
        #expect(forwarded.request.fields == ["If-None-Match": "\"a\""])
    }

    static let forwarded: [Row] = [
        Row("9111 4.3.1", stored: "ETag: \"a\"", "? INM: \"a\""),
        Row("9111 4.3.1", stored: "ETag: W/\"a\"", "? INM: W/\"a\""),
        Row("9110 8.8.3", stored: "ETag: a", "? INM: a"),
        Row("9111 4.3.1", stored: "LM: @-9", "? IMS: @-9"),
        Row("9110 13.1.3", stored: "ETag: \"a\" | LM: @-9", "? IMS: @-9 | INM: \"a\""),
        Row("9110 8.8.2", stored: "LM: x", ""), Row("9111 4.3.1", stored: "200", ""),
        Row("9111 4.3.1", stored: "200", request: "Range: bytes=0-1", "Range: bytes=0-1"),
        Row(
            "9110 13.1.5",
            stored: "ETag: \"a\"",
            request: "Range: bytes=0-1 | If-Range: \"a\"",
            "? INM: \"a\""
        ),
        Row("9111 3.3", stored: "206 | 0-4/10 | ETag: \"a\"", request: "Range: bytes=6-", "Range: bytes=6-"),
        Row("9111 4.3.1", stored: "ETag: \"a\"", request: "INM: \"b\"", "? INM: \"b\", \"a\""),
        Row("9111 4.3.1", stored: "ETag: \"a\"", request: "INM: \"a\"", "? INM: \"a\""),
        Row("9110 13.1.2", stored: "ETag: \"a\"", request: "INM: *", "INM: *"),
        Row("9110 13.1.3", stored: "ETag: \"a\"", request: "IMS: @-5", "? INM: \"a\""),
        Row("9110 13.1.3", stored: "200", request: "IMS: @-5", "IMS: @-5"),
        Row("9111 4.3.1", stored: "LM: @-9", request: "IMS: @-5", "? IMS: @-9"),
        Row("9110 13.2.1", stored: "404 | ETag: \"a\"", ""), Row("9110 13.2.1", stored: "301 | LM: @-9", ""),
        Row("9110 13.2.1", stored: "203 | ETag: \"a\"", "? INM: \"a\""),
        Row("9111 4.3.1", stored: "ETag: \"a\"", request: "Accept: b", "? Accept: b | INM: \"a\""),
        Row("9111 5.2.1.1", stored: "ETag: \"a\"", mode: .revalidate, "? CC: max-age=0 | INM: \"a\""),
        Row(
            "9111 5.2.1.1",
            stored: "ETag: \"a\"",
            request: "CC: no-cache",
            mode: .revalidate,
            "? CC: no-cache | INM: \"a\""
        ),
        Row("9111 5.2.1.4", stored: "ETag: \"a\"", mode: .reload, "CC: no-cache"),
        Row("9111 5.2.1.4", stored: "ETag: \"a\"", request: "CC: max-stale", mode: .reload, "CC: no-cache"),
        Row("9111 5.2.1.5", request: "CC: no-store", mode: .reload, "CC: no-cache, no-store"),
    ]

    @Test(arguments: forwarded) func `a forwarded request has the right conditions`(_ row: Row) throws {
        let later = row.moment.adding(99_999)
        let decision = HTTPCachePolicy().decide(
            try row.request(),
            stored: try row.storedResponse(),
            mode: row.mode,
            now: later
        )
        guard case .forward(let forwarded) = decision else {
            Issue.record("not forwarded")
            return
        }
        #expect((forwarded.validates ? "? " : "") + Row.text(forwarded.request.fields) == row.expected)
    }
}
