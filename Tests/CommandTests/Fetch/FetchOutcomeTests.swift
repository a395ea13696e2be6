// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheCommand

/// The outcome of a response, and the exit status for it.
@Suite(.takesTurns) struct FetchOutcomeTests {
    @Test(arguments: [
        ("diskcache; hit; ttl=30", FetchOutcome.hit), ("diskcache; hit", .hit),
        ("diskcache; hit; ttl=-5", .stale),
        ("diskcache; hit; ttl=0", .stale), ("diskcache; fwd=uri-miss; fwd-status=200; stored", .fetched),
        ("diskcache; fwd=bypass", .fetched),
        ("diskcache; fwd=stale; fwd-status=304; ttl=60", .revalidated),
        ("diskcache; fwd=uri-miss; collapsed", .joined), ("diskcache; detail=not-cached", .miss),
        ("diskcache; fwd=stale; ttl=599; detail=stale-if-error:unreachable", .stale),
        ("diskcache; fwd=stale; fwd-status=503; detail=stale-if-error", .stale),
        ("diskcache; fwd=miss; key=\"a; hit; collapsed\"", .fetched),
        ("diskcache; fwd=miss; key=\"a\\\"; hit\"", .fetched), ("", .fetched),
    ])
    func `the outcome is derived from Cache-Status`(status: String, outcome: FetchOutcome) {
        #expect(FetchOutcome(cacheStatus: status) == outcome)
    }

    static func response(_ status: Int, _ cacheStatus: String = "diskcache; fwd=uri-miss") -> Fetched {
        Fetched(
            status: status,
            fields: [FieldLine("Content-Type", "text/plain")],
            url: "http://host/a",
            length: 5,
            digest: nil,
            age: .seconds(2),
            cacheStatus: cacheStatus
        )
    }

    @Test(
        arguments: [
            (200, nil), (206, nil), (304, nil), (300, .unavailable),
            (404, .miss), (410, .miss), (401, .permission),
            (403, .permission),
            (429, .temporary), (503, .temporary), (500, .unavailable), (400, .unavailable),
            (504, .unavailable),
        ] as [(Int, DiskCacheCommand.ExitStatus?)]
    )
    func `a status of 300 and above, except 304, is an error with an exit status by kind`(
        status: Int,
        exit: DiskCacheCommand.ExitStatus?
    ) {
        let refusal = Self.response(status).refusal("http://host/a")
        #expect(refusal.map { DiskCacheCommand.ExitStatus($0.kind) } == exit)
        if let refusal { #expect(refusal.message.hasPrefix("http://host/a: \(status) ")) }
    }

    @Test func `a 504 is a miss if it means not cached, and an error if it is a stored response`() {
        let refusal = Self.response(504, "diskcache; detail=not-cached").refusal("u")
        #expect(refusal?.kind == .notStored)
        #expect(Self.response(504, "diskcache; hit").refusal("u")?.kind == .unreachable)
    }

    @Test func `the head is an HTTP head with Cache-Status`() {
        let head = Self.response(200, "diskcache; hit").head
        #expect(
            head == "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Status: diskcache; hit\r\n\r\n"
        )
        #expect(Self.response(299).head.hasPrefix("HTTP/1.1 299 Status 299\r\n"))
    }

    @Test func `the JSON omits fields that do not apply`() throws {
        let response = Self.response(200, "diskcache; hit; ttl=5")
        let line = try JSON.line(response.json(asked: "http://host/a", file: nil))
        #expect(
            line == """
                {"age":2,"cacheStatus":"diskcache; hit; ttl=5",\
                "fields":[{"name":"Content-Type","value":"text/plain"}],"length":5,"outcome":"hit",\
                "status":200,"url":"http://host/a"}

                """
        )
    }

    @Test func `each kind of failure has a nonzero exit status`() {
        for kind in NetworkFailure.Kind.allCases { #expect(DiskCacheCommand.ExitStatus(kind) != .done) }
    }
}
