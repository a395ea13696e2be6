// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct FreshnessTests {
    static let lifetimes: [Row] = [
        Row("9111 4.2.1", stored: "CC: max-age=60", "60 maximumAge"),
        Row("9111 5.3", stored: "CC: max-age=60 | Expires: @1", "60 maximumAge"),
        Row("9111 4.2.1", stored: "CC: s-maxage=90, max-age=60", "60 maximumAge"),
        Row("9111 5.2.2.10", stored: "CC: s-maxage=90 | Expires: @30", "30 expires"),
        Row("9111 4.2.1", stored: "CC: max-age=x | Expires: @60", "0 maximumAge"),
        Row("9110 5.3", stored: "CC: public | CC: max-age=60", "60 maximumAge"),
        Row("9111 4.2.1", stored: "CC: max-age=10 | CC: max-age=60", "10 maximumAge"),
        Row("9111 4.2.2", stored: "CC: max-age=0 | LM: @-1000", "0 maximumAge"),
        Row("9111 1.2.2", stored: "CC: max-age=4294967296", "2147483648 maximumAge"),
        Row("9111 5.4", stored: "CC: max-age=60 | Pragma: no-cache", "60 maximumAge"),
        Row("9111 4.2.1", stored: "Date: @0 | Expires: @60", "60 expires"),
        Row("9110 6.6.1", stored: "Expires: @60", "60 expires"),
        Row("9111 4.2.1", stored: "Date: @-30 | Expires: @60", "90 expires"),
        Row("9111 4.2.1", stored: "Date: @30 | Expires: @60", "30 expires"),
        Row("9111 5.3", stored: "Date: @0 | Expires: @0", "0 expires"),
        Row("9111 5.3", stored: "Date: @0 | Expires: @-60", "0 expires"),
        Row("9111 5.3", stored: "Expires: 0", "0 expires"),
        Row("9111 5.3", stored: "Expires: -1", "0 expires"),
        Row("9111 5.3", stored: "Expires:", "0 expires"),
        Row("9111 5.3", stored: "Expires: never", "0 expires"),
        Row("9111 5.3", stored: "Expires: 0 | LM: @-1000", "0 expires"),
        Row("9110 6.6.1", stored: "Date: x | Expires: @60", "60 expires"),
        Row("9111 4.2.1", stored: "Expires: @60 | Expires: @90", "60 expires"),
        Row("9111 4.2.2", stored: "Date: @0 | LM: @-1000", "100 heuristic"),
        Row("9111 4.2.2", stored: "LM: @-1000", "100 heuristic"),
        Row("9111 4.2.2", stored: "LM: @-10000000", "86400 heuristic"),
        Row("9111 4.2.2", stored: "LM: @100", "0 none"),
        Row("9110 8.8.2", stored: "LM: x", "0 none"),
        Row("9111 4.2.2", stored: "302 | LM: @-1000", "0 none"),
        Row("9111 4.2.2", stored: "302 | CC: public | LM: @-1000", "100 heuristic"),
        Row("9110 15.1", stored: "404 | LM: @-1000", "100 heuristic"),
        Row("9110 15.1", stored: "500 | LM: @-1000", "0 none"),
        Row("9111 5.4", stored: "LM: @-1000 | Pragma: x, No-Cache", "0 none"),
        Row("9111 4.2.2", stored: "200", "0 none"),
    ]

    @Test(arguments: lifetimes) func `the freshness lifetime has the right source`(_ row: Row) throws {
        let stored = try #require(try row.storedResponse())
        let freshness = HTTPCachePolicy().freshness(of: stored, now: row.moment)
        #expect("\(freshness.lifetime) \(freshness.source)" == row.expected)
    }

    static let ages: [Row] = [
        Row("9111 4.2.3", stored: "200", now: 5, "5"), Row("9111 4.2.3", stored: "Age: 7", now: 5, "12"),
        Row("9111 4.2.3", stored: "Date: @-20", now: 5, "25"),
        Row("9111 4.2.3", stored: "Date: @-20 | Age: 7", now: 5, "25"),
        Row("9111 4.2.3", stored: "Date: @-3 | Age: 30", now: 5, "35"),
        Row("9111 4.2.3", stored: "Date: @100", now: 5, "5"),
        Row("9111 4.2.3", stored: "Date: @100 | Age: 7", now: 5, "12"),
        Row("9111 4.2.3", stored: "requested=-4 | Age: 7", now: 5, "16"),
        Row("9111 4.2.3", stored: "requested=-4 | Date: @-1", now: 5, "9"),
        Row("9111 4.2.3", stored: "requested=-4 | Date: @-30", now: 5, "35"),
        Row("9111 4.2.3", stored: "200", now: -50, "0"), Row("9111 4.2.3", stored: "Age: 7", now: -50, "7"),
        Row("9111 4.2.3", stored: "requested=10", now: 5, "5"),
        Row("9111 4.2.3", stored: "Date: x | Age: 7", now: 5, "12"),
        Row("9111 5.1", stored: "Age: x", "0"), Row("9111 5.1", stored: "Age: -5", "0"),
        Row("9111 5.1", stored: "Age: 5.5", "0"), Row("9111 5.1", stored: "Age: \"7\"", "0"),
        Row("9111 5.1", stored: "Age: 3, 9", "3"), Row("9111 5.1", stored: "Age: 3 | Age: 9", "3"),
        Row("9111 1.2.2", stored: "Age: 99999999999", "2147483648"),
    ]

    @Test(arguments: ages) func `the age follows RFC 9111 4.2.3`(_ row: Row) throws {
        let stored = try #require(try row.storedResponse())
        #expect(String(HTTPCachePolicy.age(of: stored, now: row.moment)) == row.expected)
    }

    static let chosen: [Row] = [
        Row("4.2.1", stored: "CC: max-age=1", now: 29, "fresh 30"),
        Row("4.2.1", stored: "CC: max-age=100", now: 30, "stale 30"),
        Row("4.2.1", stored: "CC: no-cache, no-store", now: 29, "fresh 30"),
        Row("4.2.1", stored: "Age: 100", now: 29, "fresh 130"),
        Row("4.2.1", stored: "Date: @-100", now: 30, "stale 130"),
        Row("4.2.1", stored: "302", now: 29, "fresh 30"),
        Row("4.2.1", stored: "404 | CC: max-age=1", now: 5, "stale 1"),
        Row("4.2.1", stored: "503 | CC: max-age=100", now: 50, "fresh 100"),
        Row("5.2.2.4", stored: "404 | CC: max-age=100, no-cache", "stale 100"),
    ]

    @Test(arguments: chosen) func `the caller's lifetime applies, except to errors`(_ row: Row) throws {
        var policy = HTTPCachePolicy()
        policy.lifetime = 30
        let stored = try #require(try row.storedResponse())
        let freshness = policy.freshness(of: stored, now: row.moment)
        let isUsed: Bool
        if case .answer = policy.decide(try row.request(), stored: stored, mode: .standard, now: row.moment) {
            isUsed = true
        } else {
            isUsed = false
        }
        #expect("\(isUsed ? "fresh" : "stale") \(freshness.lifetime)" == row.expected)
    }

    @Test(arguments: [(Int.max, 2_147_483_648), (-1, 0), (Int.min, 0)])
    func `the caller's lifetime is clamped to its bounds`(_ lifetime: Int, _ expected: Int) throws {
        var policy = HTTPCachePolicy()
        policy.lifetime = lifetime
        #expect(policy.freshness(of: try Row.stored("200"), now: Row.begin).lifetime == expected)
    }

    @Test func `heuristic freshness can be disabled`() throws {
        var policy = HTTPCachePolicy()
        policy.heuristic = .none
        #expect(!policy.freshness(of: try Row.stored("LM: @-1000"), now: Row.begin).isFresh)
    }

    /// Bounds on how long a response may be used stale.
    ///
    /// `unasked` and `most` are the policy's bounds; `staleness` is the number of seconds since the response became stale.
    typealias Bound = (section: String, stored: String, unasked: Int, most: Int, staleness: Int, isUsed: Bool)

    static let bounds: [Bound] = [
        ("5861 4", "CC: max-age=0", 0, .max, 0, false),
        ("5861 4", "CC: max-age=0", 10, .max, 9, true),
        ("5861 4", "CC: max-age=0", 10, .max, 10, false),
        ("5861 4", "CC: max-age=0", 10, 5, 5, false),
        ("5861 4", "CC: max-age=0, X=20", 10, 5, 4, true),
        ("5861 4", "CC: max-age=0, X=20", 0, .max, 19, true),
        ("5861 4", "CC: max-age=0, X=20", 0, .max, 20, false),
        ("5861 4", "CC: max-age=0, X=20", 0, 5, 5, false),
        ("5861 4", "CC: max-age=0, X=0", 10, .max, 0, false),
        ("5861 4", "CC: max-age=0, X=x", 10, .max, 0, false),
        ("5861 4", "CC: max-age=0, must-revalidate, X=20", 10, .max, 1, false),
        ("5861 4", "CC: max-age=0, no-cache, X=20", 10, .max, 1, false),
        ("5861 4", "CC: max-age=0, no-cache=\"a\", X=20", 0, .max, 1, true),
        ("5861 4", "CC: max-age=0, proxy-revalidate, X=20", 0, .max, 1, true),
    ]

    @Test(arguments: bounds) func `a stale response is used within its allowance`(_ row: Bound) throws {
        var policy = HTTPCachePolicy()
        policy.staleIfError = HTTPCachePolicy.Allowance(unasked: row.unasked, most: row.most)
        policy.staleWhileRevalidate = policy.staleIfError
        let now = Row.begin.adding(row.staleness)
        func stored(_ directive: String) throws -> StoredResponse {
            try Row.stored(row.stored.replacing("X=", with: directive + "="))
        }
        let (failing, renewing) = (try stored("stale-if-error"), try stored("stale-while-revalidate"))
        let answer = policy.replacement(for: try Row("", "").request(), stored: failing, now: now)
        #expect((answer != nil) == row.isUsed)
        #expect(policy.mayRevalidateBehind(renewing, policy.freshness(of: renewing, now: now)) == row.isUsed)
    }
}
