// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct DecisionTests {
    struct Case: Sendable {
        var section: String
        var request: HTTPFields
        var stored: HTTPFields
        var age: Int
        var mode: FetchMode
        var expected: String
        init(
            _ section: String, _ request: HTTPFields, _ stored: HTTPFields, _ age: Int, _ expected: String,
            _ mode: FetchMode = .standard
        ) {
            (self.section, self.request, self.stored) = (section, request, stored)
            (self.age, self.mode, self.expected) = (age, mode, expected)
        }
    }

    static let m: HTTPFields = ["Cache-Control": "max-age=60"]
    static let must: HTTPFields = ["Cache-Control": "max-age=60, must-revalidate"]
    static let cases = [
        Case("9111 4.2", [:], m, 59, "200"), Case("9111 4.2", [:], m, 60, "stale"),
        Case("9111 5.2.1.1", ["Cache-Control": "max-age=10"], m, 11, "request"),
        Case("9111 5.2.1.2", ["Cache-Control": "max-stale"], m, 999, "200"),
        Case("9111 5.2.1.2", ["Cache-Control": "max-stale=5"], m, 66, "stale"),
        Case("9111 5.2.1.2", ["Cache-Control": "max-stale=5"], m, 65, "200"),
        Case("9111 5.2.1.3", ["Cache-Control": "min-fresh=10"], m, 51, "request"),
        Case("9111 5.2.1.4", ["Cache-Control": "no-cache"], m, 1, "request"),
        Case("9111 5.2.1.7", ["Cache-Control": "only-if-cached"], m, 61, "504"),
        Case("9111 5.4", ["Pragma": "no-cache"], m, 1, "request"),
        Case("9111 5.2.2.2", ["Cache-Control": "max-stale"], must, 61, "stale"),
        Case("9111 5.2.2.2", [:], must, 61, "504", .offline), Case("9111 4.2.4", [:], m, 999, "200", .offline),
        Case("9111 4.2.4", [:], m, 999, "200", .cacheFirst), Case("9111 5.2.1.4", [:], m, 1, "request", .reload),
        Case("9111 4.3", [:], m, 1, "request", .revalidate), Case("9111 5.2.1.7", [:], m, 61, "504", .onlyIfCached),
        Case("8246 2", [:], ["Cache-Control": "max-age=60, immutable"], 1, "200", .revalidate),
        Case("5861 3", [:], ["Cache-Control": "max-age=60, stale-while-revalidate=9"], 61, "behind"),
        Case("5861 3", [:], ["Cache-Control": "max-age=60, stale-while-revalidate=9"], 70, "stale"),
        Case("9111 5.2.2.4", [:], ["Cache-Control": "max-age=60, no-cache"], 1, "stale"),
        Case("9110 13.1.2", ["If-None-Match": "W/\"a\""], ["Cache-Control": "max-age=60", "ETag": "\"a\""], 1, "304"),
        Case("9110 14.2", ["Range": "bytes=0-1"], m, 1, "206"), Case("9110 14.2", ["Range": "bytes=99-"], m, 1, "416"),
        Case("9110 13.1.5", ["Range": "bytes=0-1", "If-Range": "\"z\""], m, 1, "200"),
        Case("9111 4.3.2", ["If-Match": "\"a\""], m, 1, "bypass"),
    ]

    @Test(arguments: cases) func `what is done about a request`(_ line: Case) throws {
        let url = try #require(HTTPURL("https://a/"))
        let begin = HTTPDate(seconds: 1_700_000_000)
        let stored = StoredResponse(fields: line.stored, requested: begin, received: begin, body: .complete(10))
        let request = HTTPRequest("GET", url, line.request)
        let decision = HTTPCachePolicy().decide(
            request, stored: stored, mode: line.mode, now: begin.adding(line.age))
        let found =
            switch decision {
            case .answer(let answer): String(answer.status)
            case .answerAndRevalidate: "behind"
            case .forward(let forwarded): forwarded.reason.rawValue
            case .unavailable: "504"
            }
        #expect(found == line.expected, "\(line.section)")
    }
}
