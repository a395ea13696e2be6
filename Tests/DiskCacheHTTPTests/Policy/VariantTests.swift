// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct VariantTests {
    /// `response` is the response to `request`; `stored` is a later request that is compared by the response's Vary.
    static let cases: [Row] = [
        Row("9111 4.1", stored: "A: 2", request: "A: 1", response: "200", "same"),
        Row("9111 4.1", stored: "A: 1", request: "A: 1", response: "Vary: A", "same"),
        Row("9111 4.1", stored: "A: 2", request: "A: 1", response: "Vary: A", "other"),
        Row("9111 4.1", stored: "a: 1", request: "A: 1", response: "Vary: a", "same"),
        Row("9111 4.1", stored: "GET", request: "A: 1", response: "Vary: A", "other"),
        Row("9111 4.1", stored: "A: 1", request: "GET", response: "Vary: A", "other"),
        Row("9111 4.1", stored: "GET", request: "GET", response: "Vary: A", "same"),
        Row("9111 4.1", stored: "A:", request: "GET", response: "Vary: A", "other"),
        Row("9111 4.1", stored: "B: 2", request: "B: 1", response: "Vary: A", "same"),
        Row("9111 4.1", stored: "A: 1 | B: 2", request: "A: 1 | B: 1", response: "Vary: A, B", "other"),
        Row(
            "9111 4.1",
            stored: "A: 1 | B: 2",
            request: "A: 1 | B: 1",
            response: "Vary: A | Vary: B",
            "other"
        ),
        Row("9111 4.1", stored: "B: 1 | A: 1", request: "A: 1 | B: 1", response: "Vary: A, B", "same"),
        Row("9111 4.1", stored: "A: 1", request: "A: 1", response: "Vary: *", "none"),
        Row("9111 4.1", stored: "A: 1", request: "A: 1", response: "Vary: A | Vary: B, *", "none"),
        Row("9110 12.5.5", stored: "A: 1", request: "A: 2", response: "Vary:", "same"),
        Row("9110 12.5.5", stored: "A: 1", request: "A: 1", response: "Vary: , A ,", "same"),
        Row("9111 4.1", stored: "A: 1, 2", request: "A: 1 | A: 2", response: "Vary: A", "same"),
        Row("9111 4.1", stored: "A: 1,2", request: "A: 1 , 2", response: "Vary: A", "same"),
        Row("9111 4.1", stored: "A: \"1, 2\"", request: "A: \"1,2\"", response: "Vary: A", "other"),
        Row("9111 4.1", stored: "A: 2, 1", request: "A: 1, 2", response: "Vary: A", "other"),
        Row("9111 4.1", stored: "A: x", request: "A: X", response: "Vary: A", "other"),
        Row(
            "9110 12.5.3",
            stored: "Accept-Encoding: br, GZIP",
            request: "Accept-Encoding: gzip,br",
            response: "Vary: Accept-Encoding",
            "same"
        ),
        Row(
            "9110 12.5.3",
            stored: "Accept-Encoding: gzip; q=0.5",
            request: "Accept-Encoding: gzip;q=0.5",
            response: "Vary: accept-encoding",
            "same"
        ),
        Row(
            "9110 12.5.3",
            stored: "Accept-Encoding: gzip;q=0",
            request: "Accept-Encoding: gzip",
            response: "Vary: accept-encoding",
            "other"
        ),
        Row(
            "9110 12.5.4",
            stored: "Accept-Language: de;q=0.5, EN",
            request: "Accept-Language: en,de;q=0.5",
            response: "Vary: Accept-Language",
            "same"
        ),
        Row(
            "9110 12.5.4",
            stored: "Accept-Language: de",
            request: "Accept-Language: de-CH",
            response: "Vary: Accept-Language",
            "other"
        ),
        Row(
            "9110 12.5.1",
            stored: "Accept: b/b, a/a",
            request: "Accept: a/a,b/b",
            response: "Vary: Accept",
            "same"
        ),
        Row("9111 4.1", stored: "Cookie: a=b", request: "Cookie: a=c", response: "Vary: Cookie", "other"),
    ]

    /// The same without Vary: credentials always separate responses, even if they are in unknown fields.
    static let credentials: [Row] = [
        Row("9111 7.1", stored: "Authorization: Basic a", request: "Authorization: Basic b", "other"),
        Row("9111 7.1", stored: "GET", request: "Authorization: Basic b", "other"),
        Row("9111 7.1", stored: "Authorization: Basic b", request: "GET", "other"),
        Row("9111 7.1", stored: "Authorization: Basic b", request: "Authorization: Basic b", "same"),
        Row("9111 7.1", stored: "Cookie: a=b", request: "Cookie: a=c", "other"),
        Row("9111 7.1", stored: "Proxy-Authorization: a", request: "GET", "other"),
        Row("9111 7.1", stored: "X-Api-Key: a", request: "X-Api-Key: b", "other"),
        Row("9111 7.1", stored: "x-api-key: a", request: "X-Api-Key: a", "same"),
        Row("9111 7.1", stored: "Private-Token: a", request: "Job-Token: a", "other"),
        Row("9111 7.1", stored: "A: 1 | B: 2", request: "B: 2 | A: 1", "same"),
        Row("9111 7.1", stored: "A: 1", request: "A: 1 | B:", "other"),
        Row("9111 7.1", stored: "A: 1 | A: 2", request: "A: 1, 2", "other"),
        Row("9111 7.1", stored: "A: 1", request: "A: 1", response: "Vary: A", "same"),
        Row("9111 7.1", stored: "A: 1", request: "A: 2", response: "Vary: B", "other"),
        Row("9111 7.1", stored: "A: 1", request: "A: 2", response: "Vary: @credentials", "other"),
        Row(
            "9111 7.1",
            stored: "Accept: a/a | X-Request-Id: 1",
            request: "X-Request-Id: 2 | User-Agent: x",
            "same"
        ),
        Row("9111 7.1", stored: "Range: bytes=0-1 | If-Range: \"a\"", request: "Pragma: no-cache", "same"),
    ]

    @Test(arguments: cases) func `requests with equal Vary fields share a response`(_ row: Row) throws {
        var policy = HTTPCachePolicy()
        policy.separatesCredentials = false
        try check(row, policy)
    }

    @Test(arguments: credentials) func `different credentials separate responses`(_ row: Row) throws {
        try check(row, HTTPCachePolicy())
    }

    private func check(_ row: Row, _ policy: HTTPCachePolicy) throws {
        let (first, second) = (try row.request(), try row.request(row.stored))
        let response = row.response()
        var found = "none"
        if let variant = policy.variant(of: response.fields, to: first, hasher: { $0 + "!" }) {
            var stored = try Row.stored("200")
            (stored.fields, stored.variant) = (response.fields, variant)
            var index = VariantIndex()
            index.add(variant)
            let isFound = index.variants(for: second, hasher: { $0 + "!" }).map(\.text) == [variant.text]
            let isMatching = policy.matches(stored, second, hasher: { $0 + "!" })
            found = isFound && isMatching ? "same" : !isFound && !isMatching ? "other" : "undecided"
        }
        #expect(found == row.expected)
    }

    @Test(arguments: ["Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key", "Anything"])
    func `credentials are sealed`(_ name: String) throws {
        let variant = try #require(
            HTTPCachePolicy().variant(
                of: ["Vary": name],
                to: try Row("", "").request("\(name): secret"),
                hasher: { _ in "sealed" }
            )
        )
        #expect(variant.text.contains("sealed") && !variant.text.contains("secret"))
    }

    @Test func `a response stored without credential information matches no request`() throws {
        let stored = try Row.stored("200")
        #expect(!HTTPCachePolicy().matches(stored, try Row("", "").request(), hasher: { $0 }))
    }

    @Test func `fields that the caller names don't separate responses`() throws {
        var request = try Row("", "").request("X-Mine: a | X-Api-Key: b")
        request.plainFields = ["x-mine"]
        #expect(request.secrets.map(\.name) == ["x-api-key"])
        let variant = HTTPCachePolicy().variant(
            of: ["Vary": "X-Mine"],
            to: request,
            hasher: { _ in "sealed" }
        )
        #expect(variant?.values == ["@credentials": "sealed", "x-mine": "a"])
    }

    @Test func `without credential separation, only Vary distinguishes variants`() throws {
        var policy = HTTPCachePolicy()
        policy.separatesCredentials = false
        let request = try Row("", "").request("Authorization: a")
        #expect(policy.variant(of: [:], to: request, hasher: { $0 }) == Variant())
    }

    @Test func `a variant's text is unambiguous whatever its values contain`() throws {
        let one = try Row("", "").request("A: 1")
        var two = one
        two.fields = ["A": "1\nb=1:2"]
        func text(_ request: HTTPRequest, _ names: [String]) -> String {
            Variant(of: request, fields: names, hasher: { $0 }).text
        }
        #expect(text(one, ["a"]) != text(two, ["a"]))
        #expect(text(two, ["a"]) != text(try Row("", "").request("A: 1 | B: 2"), ["a", "b"]))
        #expect(text(one, []).isEmpty)
    }

    /// Stored responses separated by semicolons, and the X field of the chosen one.
    static let choices: [Row] = [
        Row("9111 4.1", stored: "X: 0 | Date: @1; X: 1 | Date: @2", "1"),
        Row("9111 4.1", stored: "X: 0 | Date: @2; X: 1 | Date: @1", "0"),
        Row("9111 4.1", stored: "X: 0 | Date: @9; X: 1 | Vary: a | Date: @1", "1"),
        Row("9111 4.1", stored: "X: 0 | Vary: b | Date: @9; X: 1 | Vary: a | Date: @1", "0"),
        Row("9111 4.1", stored: "X: 0 | Vary: * | Date: @9; X: 1 | Date: @1", "1"),
        Row("9111 4.1", stored: "X: 0 | received=5; X: 1 | received=6", "1"),
        Row("9111 4.1", stored: "X: 0 | Vary: *", "none"),
    ]

    @Test(arguments: choices) func `a response with Vary comes first, then the newest`(_ row: Row) throws {
        let candidates = try row.stored.split(separator: ";").map { try Row.stored(String($0)) }
        var policy = HTTPCachePolicy()
        policy.separatesCredentials = false
        let choice = policy.choice(among: candidates, for: try row.request(), hasher: { $0 })
        #expect(choice?.fields.first("X") ?? "none" == row.expected)
    }

    @Test func `the index holds a bounded number of distinct field lists, newest first`() throws {
        var index = VariantIndex()
        let request = try Row("", "").request()
        func add(_ names: [String]) { index.add(Variant(of: request, fields: names, hasher: { $0 })) }
        add(["a"])
        add(["b"])
        add(["a"])
        #expect(index.rules == [["a"], ["b"]])
        for number in 0..<20 { add(["c\(number)"]) }
        #expect(index.rules.count == VariantIndex.mostRules)
        #expect(index.rules.first == ["c19"])
    }
}
