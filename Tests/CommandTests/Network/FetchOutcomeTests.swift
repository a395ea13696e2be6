// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import DiskCacheCommand
@testable import DiskCacheHTTP
@testable import diskcache_net

/// The outcome of a response, and the exit status for it.
@Suite(.takesTurns) struct FetchOutcomeTests {
    static func status(_ change: (inout CacheStatus) -> Void) -> CacheStatus {
        var status = CacheStatus()
        change(&status)
        return status
    }

    @Test(
        arguments: [
            (status { ($0.isHit, $0.timeToLive) = (true, 30) }, .hit), (status { $0.isHit = true }, .hit),
            (status { ($0.isHit, $0.timeToLive) = (true, -5) }, .stale),
            (status { ($0.isHit, $0.timeToLive) = (true, 0) }, .stale),
            (status { ($0.forward, $0.forwardStatus, $0.isStored) = (.uriMiss, 200, true) }, .fetched),
            (status { $0.forward = .bypass }, .fetched), (status { _ in }, .fetched),
            (status { ($0.forward, $0.forwardStatus, $0.timeToLive) = (.stale, 304, 60) }, .revalidated),
            (status { ($0.forward, $0.isCollapsed) = (.uriMiss, true) }, .joined),
            (status { $0.detail = "not-cached" }, .miss),
            (status { ($0.forward, $0.detail) = (.stale, "stale-if-error:unreachable") }, .stale),
            (status { ($0.forwardStatus, $0.detail) = (503, "stale-if-error") }, .stale),
        ] as [(CacheStatus, FetchOutcome)]
    )
    func `the outcome is derived from the cache's status`(status: CacheStatus, outcome: FetchOutcome) {
        #expect(FetchOutcome(status) == outcome)
    }

    static func response(
        _ status: Int,
        _ cacheStatus: CacheStatus = status { $0.forward = .uriMiss }
    ) -> FetchResponse {
        FetchResponse(
            status: status,
            fields: [("Content-Type", "text/plain")],
            url: "http://host/a",
            body: Data(),
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
        #expect(refusal?.status == exit)
        if let refusal { #expect(refusal.message.hasPrefix("http://host/a: \(status) ")) }
    }

    @Test func `a 504 is a miss if it means not cached, and an error if it is a stored response`() {
        let refusal = Self.response(504, Self.status { $0.detail = "not-cached" }).refusal("u")
        #expect(refusal?.status == .miss)
        #expect(Self.response(504, Self.status { $0.isHit = true }).refusal("u")?.status == .unavailable)
    }

    @Test func `the head is an HTTP head with Cache-Status`() {
        let head = Self.response(200, Self.status { $0.isHit = true }).head
        #expect(
            head == "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Status: diskcache; hit\r\n\r\n"
        )
        #expect(Self.response(299).head.hasPrefix("HTTP/1.1 299 Status 299\r\n"))
    }

    @Test func `the JSON omits fields that do not apply`() throws {
        let response = Self.response(200, Self.status { ($0.isHit, $0.timeToLive) = (true, 5) })
        let line = try JSON.line(response.json(asked: "http://host/a", file: nil))
        #expect(
            line == """
                {"age":2,"cacheStatus":"diskcache; hit; ttl=5",\
                "fields":[{"name":"Content-Type","value":"text/plain"}],"length":5,"outcome":"hit",\
                "status":200,"url":"http://host/a"}

                """
        )
    }

    @Test(
        arguments: [
            (FetchError(.invalidURL, ""), .usage), (FetchError(.timedOut, ""), .temporary),
            (FetchError(.tooLarge, ""), .dataError), (FetchError(.digestMismatch, ""), .dataError),
            (FetchError(.outputFailed, ""), .inputOutput), (FetchError(.noSpace, ""), .cannotCreate),
            (FetchError(.unreachable, ""), .unavailable),
            (FetchError(.unreachable, "", status: 407), .permission),
            (FetchError(.libraryMissing, ""), .unavailable), (FetchError(.other, ""), .unavailable),
        ] as [(FetchError, DiskCacheCommand.ExitStatus)]
    )
    func `each kind of error has its exit status`(error: FetchError, exit: DiskCacheCommand.ExitStatus) {
        #expect(Failure(error).status == exit)
    }
}
