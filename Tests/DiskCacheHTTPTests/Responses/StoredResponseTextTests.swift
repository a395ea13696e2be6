// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// Parsing of stored responses: no input leads to values out of range.
@Suite(.takesTurns) struct StoredResponseTextTests {
    private static func response(_ change: (inout StoredResponse) -> Void = { _ in }) -> StoredResponse {
        var response = StoredResponse(
            fields: [
                "Cache-Control": "max-age=60", "Date": HTTPDate(seconds: 1_700_000_000).text, "ETag": "\"1\"",
            ],
            requested: HTTPDate(seconds: 1_700_000_000),
            received: HTTPDate(seconds: 1_700_000_001),
            body: .complete(10)
        )
        change(&response)
        return response
    }

    @Test func `a head survives a round trip`() throws {
        let response = Self.response().issued(in: "e")
        #expect(StoredResponse(response.text) { _ in .complete(10) } == response)
    }

    @Test(arguments: [
        "1 200 1700000000 1700000001 -1 e i",
        "1 100 -62167219200 253402300799 0 e i",
    ])
    func `numbers within the valid range are accepted`(_ text: String) {
        #expect(StoredResponse(text) { .part(0..<0, of: $0) } != nil)
    }

    @Test(arguments: [
        "1 200 -9223372036854775808 1700000001 -1 e i",
        "1 200 1700000000 9223372036854775807 -1 e i",
        "1 200 1700000000 253402300800 -1 e i",
        "1 200 -62167219201 1700000001 -1 e i",
        "1 99 1700000000 1700000001 -1 e i",
        "1 1000 1700000000 1700000001 -1 e i",
        "1 -200 1700000000 1700000001 -1 e i",
        "1 200 1700000000 1700000001 -2 e i",
        "1 200 1700000000 1700000001 -9223372036854775808 e i",
        "1 200 99999999999999999999 1700000001 -1 e i",
        "2 200 1700000000 1700000001 -1 e i",
        "1 200 1700000000 1700000001 -1 e",
        "",
    ])
    func `malformed or out-of-range heads are rejected`(_ text: String) {
        #expect(StoredResponse(text) { .part(0..<0, of: $0) } == nil)
    }

    @Test func `dates and their sums saturate at the years 0 and 9999`() {
        let (first, last) = (HTTPDate(seconds: .min), HTTPDate(seconds: .max))
        #expect(first.text == "Sat, 01 Jan 0000 00:00:00 GMT")
        #expect(last.text == "Fri, 31 Dec 9999 23:59:59 GMT")
        #expect(last.adding(.max) == last && first.adding(.min) == first)
        #expect(first.adding(.max) == last && last.adding(.min) == first)
        #expect(last.since(first) == 315_569_519_999)
        #expect(HTTPDate(Date(timeIntervalSince1970: .infinity)) == last)
        #expect(HTTPDate(Date(timeIntervalSince1970: -.infinity)) == first)
        #expect(HTTPDate(Date(timeIntervalSince1970: .nan)) == HTTPDate(seconds: 0))
        #expect(HTTPDate(Date(timeIntervalSince1970: -0.5)) == HTTPDate(seconds: -1))
    }

    /// Numbers at the edges of the ranges used in arithmetic.
    private static let numbers = [
        "0", "-1", "1", "60", "200", "206", "304", "404", "503", "999", "1700000000", "2147483648",
        "4294967296",
        "-62167219200", "253402300799", "9223372036854775807", "-9223372036854775808", "99999999999999999999",
    ]
    private static let values =
        numbers + [
            "", "*", "Mon, 01 Jan 0000 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT",
            "Thu, 01 Jan 1970 00:00:00 GMT", "Thursday, 01-Jan-70 00:00:00 GMT", "W/\"1\"", "\"1\"",
            "bytes 0-4/10",
            "bytes 0-9223372036854775806/*", "bytes */9223372036854775807", "public", "no-cache=\"Date\"",
            "max-age=99999999999999999999", "stale-if-error=9223372036854775807",
            "stale-while-revalidate=2147483648",
            "max-age=2147483648, stale-while-revalidate=60", "Accept-Language",
        ]
    private static let names = [
        "Date", "Age", "Expires", "Last-Modified", "Cache-Control", "ETag", "Vary", "Content-Length",
        "Content-Range", "?accept-language", "?cookie", ":", "",
    ]

    @Test func `any stored head can be judged, served and renewed without a trap`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SeededGenerator(seed: seed)
        let url = try #require(HTTPURL("https://a/x"))
        var policies = [HTTPCachePolicy(), HTTPCachePolicy(), HTTPCachePolicy()]
        policies[1].lifetime = .max
        policies[2].staleIfError.unasked = .max
        policies[2].staleWhileRevalidate.unasked = .max
        policies[2].heuristic = .sinceModified(1, most: .max)
        let moments = [0, 1_700_000_100, .min, .max].map { HTTPDate(seconds: $0) }
        var parsed = 0
        for _ in 0..<(isSoak ? 100_000 : 1000) {
            func any(_ texts: [String]) -> String { texts.randomElement(using: &generator) ?? "" }
            let numbers = (0..<4).map { place in
                Bool.random(using: &generator)
                    ? ["200", "1700000000", "1700000001", "10"][place] : any(Self.numbers)
            }
            var lines = ["1 \(numbers.joined(separator: " ")) e i"]
            for _ in 0..<Int.random(in: 0...4, using: &generator) {
                lines.append("\(any(Self.names)): \(any(Self.values))")
            }
            let isComplete = Bool.random(using: &generator)
            let text = lines.joined(separator: "\n")
            guard
                let stored = StoredResponse(text, body: { isComplete ? .complete(10) : .part(0..<5, of: $0) })
            else { continue }
            parsed += 1
            let request = HTTPRequest(
                any(["GET", "HEAD", "POST"]),
                url,
                [
                    any(["Range", "If-None-Match", "If-Modified-Since", "Cache-Control", "Age"]): any(
                        Self.values
                    )
                ]
            )
            let response = HTTPResponse(
                [200, 206, 304, 404, 503].randomElement(using: &generator) ?? 200,
                [any(["Date", "ETag", "Content-Range", "Age"]): any(Self.values)]
            )
            for (policy, now) in zip(policies, moments) + [(policies[0], moments[3])] {
                let freshness = policy.freshness(of: stored, now: now)
                #expect(freshness.age >= 0 && freshness.lifetime >= 0, "seed \(seed): \(lines)")
                _ = (freshness.remaining, freshness.staleness)
                for mode in FetchMode.allCases {
                    _ = policy.decide(request, stored: stored, mode: mode, now: now)
                }
                _ = policy.answer(request, from: stored, now: now, isValidated: true)
                _ = policy.replacement(for: request, stored: stored, now: now)
                _ = policy.choice(among: [stored], for: request) { $0 }
                let asked = policy.forwarded(request, .stale, validating: stored, mode: .standard)
                _ = policy.receive(
                    response,
                    to: request,
                    forwarded: asked,
                    stored: stored,
                    requested: now,
                    received: now
                )
                _ = stored.resumption(by: response, received: now)
            }
            let again = StoredResponse(stored.issued(in: "e").text) { .part(0..<5, of: $0) }
            #expect(again != nil, "seed \(seed): \(lines)")
        }
        #expect(parsed > 100, "seed \(seed)")
    }
}
