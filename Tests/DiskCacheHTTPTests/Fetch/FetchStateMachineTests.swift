// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import DiskCacheHTTP

/// The pure part of a request to an origin: decisions without I/O.
@Suite(.takesTurns) struct FetchStateMachineTests {
    private static let begin = HTTPDate(seconds: 1_700_000_000)
    private let down = FetchError(.unreachable, "down")

    private func course(
        _ method: String = "GET",
        stored fields: HTTPFields? = nil,
        retries: Int = 2
    ) throws -> FetchStateMachine {
        let request = HTTPRequest(method, try #require(HTTPURL("https://a/b")))
        let stored = fields.map {
            StoredResponse(fields: $0, requested: Self.begin, received: Self.begin, body: .complete(10))
        }
        let policy = HTTPCachePolicy()
        let inquiry = FetchStateMachine.Inquiry(
            policy: policy,
            request: request,
            judged: request,
            stored: stored,
            mode: .standard,
            retries: retries,
            longestPause: .seconds(30)
        )
        let forwarded = policy.forwarded(request, .stale, validating: stored, mode: .standard)
        return FetchStateMachine(inquiry, forwarded)
    }

    private func moment(_ seconds: Int = 100, left: Duration? = nil, jitter: Double = 1)
        -> FetchStateMachine.Moment
    {
        FetchStateMachine.Moment(date: Self.begin.adding(seconds), left: left, jitter: jitter)
    }

    @Test func `pauses double, and half of each is random`() throws {
        var course = try course(retries: 3)
        var pauses: [FetchStateMachine.Action] = []
        for jitter in [1.0, 0, 1] {
            course.failed(down, at: moment(jitter: jitter))
            pauses.append(course.action)
            course.paused()
        }
        #expect(
            pauses == [.pause(.milliseconds(200)), .pause(.milliseconds(200)), .pause(.milliseconds(800))]
        )
        course.failed(down, at: moment())
        #expect(course.action == .finish(.fail(down)))
    }

    @Test func `there is no retry without enough time, for unsafe methods or for lasting errors`() throws {
        var late = try course()
        late.failed(down, at: moment(left: .milliseconds(100)))
        var cutShort = down
        cutShort.isCutShort = true
        #expect(late.action == .finish(.fail(cutShort)))
        var post = try course("POST")
        post.failed(down, at: moment())
        #expect(post.action == .finish(.fail(down)))
        var other = try course()
        let large = FetchError(.tooLarge, "large")
        other.failed(large, at: moment())
        #expect(other.action == .finish(.fail(large)))
    }

    @Test func `Retry-After is honored in seconds or as a date, up to a limit`() throws {
        let texts = ["3": 3, Self.begin.adding(107).text: 7]
        for (text, seconds) in texts {
            var course = try course()
            course.received(HTTPResponse(429, ["Retry-After": text]), requested: Self.begin, at: moment())
            #expect(course.action == .pause(.seconds(seconds)))
        }
        var course = try course()
        let response = HTTPResponse(503, ["Retry-After": "31"])
        course.received(response, requested: Self.begin, at: moment())
        #expect(course.action == .finish(.pass(response, removes: false)))
    }

    @Test func `a usable stale response is returned instead of a retry`() throws {
        var course = try course(stored: ["Cache-Control": "max-age=60, stale-if-error=60"])
        course.failed(down, at: moment())
        guard case .finish(.stale(let answer, let error)) = course.action else {
            Issue.record("\(course.action)")
            return
        }
        #expect(answer.freshness.staleness == 40)
        #expect(error == down)
    }

    @Test func `a 304 for another response is retried without conditions`() throws {
        var course = try course(stored: ["ETag": "\"1\""])
        let response = HTTPResponse(304, ["ETag": "\"2\""])
        course.received(response, requested: Self.begin, at: moment())
        guard case .send(let request) = course.action else {
            Issue.record("\(course.action)")
            return
        }
        #expect(!request.fields.contains("If-None-Match"))
    }

    @Test func `a stored response and a choice survive a round trip`() throws {
        let url = try #require(HTTPURL("https://a/"))
        let request = HTTPRequest("GET", url, ["Accept-Language": "de", "A": ""])
        let variant = Variant(of: request, fields: ["a", "accept-language", "b"]) { $0 }
        let response = StoredResponse(
            status: 404,
            fields: ["A": "b: c", "A": "", "Date": Self.begin.text],
            requested: Self.begin,
            received: Self.begin.adding(1),
            variant: variant,
            body: .complete(7)
        )
        let issued = response.issued(in: "x")
        #expect(StoredResponse(issued.text) { _ in .complete(7) } == issued)
        #expect(StoredResponse("2 1 2 3 4 x y") { _ in .complete(7) } == nil)
        var choice = Choice()
        choice.index.add(Variant())
        choice.index.add(variant)
        #expect(Choice(choice.data) == choice)
    }
}
