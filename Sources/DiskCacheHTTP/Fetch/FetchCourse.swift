// SPDX-License-Identifier: Apache-2.0

/// The course of one question to the origin: what to send, when to send it again, and what becomes of the
/// answer.
///
/// A pure state machine over the policy: no input or output, no clock, no chance but what it is given.
struct FetchCourse: Sendable {
    /// What is asked, and on what terms.
    struct Inquiry: Sendable {
        var policy: HTTPCachePolicy
        /// As the caller made it.
        var request: HTTPRequest
        /// The same with what the caller says about errors, which is not sent.
        var judged: HTTPRequest
        var stored: StoredResponse?
        var mode: FetchMode
        /// How often it is sent again.
        var retries: Int
        /// A server that asks for a longer pause is not asked again.
        var longestPause: Duration
    }

    /// What to do next.
    enum Action: Sendable, Equatable {
        case send(HTTPRequest)
        case pause(Duration)
        case finish(Ending)
    }

    /// What becomes of it.
    enum Ending: Sendable, Equatable {
        /// Keep the response with the body that came, and answer with it.
        case store(HTTPResponse, requested: HTTPDate, received: HTTPDate)
        /// The stored response is right, with these fields.
        case renew(StoredResponse, CachedAnswer)
        /// Answer with the response, and keep nothing of it. `removes`: the stored response is not right any more.
        case pass(HTTPResponse, removes: Bool)
        /// Answer with the stored response, because of an error.
        case stale(CachedAnswer, FetchError?)
        case fail(FetchError)
    }

    /// Now, and what else there is no asking for here.
    struct Moment: Sendable {
        var date: HTTPDate
        /// Until the caller's limit; nil: there is none.
        var left: Duration?
        /// From 0 to 1, by chance.
        var jitter: Double
    }

    let inquiry: Inquiry
    private(set) var forwarded: ForwardedRequest
    private(set) var action: Action
    /// That of the last response.
    private(set) var status: Int?
    private var attempts = 0
    private var hasBegunAnew = false

    init(_ inquiry: Inquiry, _ forwarded: ForwardedRequest) {
        self.inquiry = inquiry
        self.forwarded = forwarded
        action = .send(forwarded.request)
    }

    /// Takes the response, whose body is there.
    mutating func received(_ response: HTTPResponse, requested: HTTPDate, at moment: Moment) {
        status = response.status
        if fitsNoQuestion(response) { return beginAnew() }
        let reception = inquiry.policy.receive(
            response,
            to: inquiry.judged,
            forwarded: forwarded,
            stored: inquiry.stored,
            requested: requested,
            received: moment.date
        )
        switch reception {
        case .stale(let answer): action = .finish(.stale(answer, nil))
        case .renewed(let stored, let answer): action = .finish(.renew(stored, answer))
        case .refetch: beginAnew()
        case .store, .pass:
            if let pause = pause(after: response, at: moment) {
                action = .pause(pause)
            } else if case .store(.complete) = reception {
                action = .finish(.store(response, requested: requested, received: moment.date))
            } else if case .pass(let removes) = reception {
                action = .finish(.pass(response, removes: removes))
            } else {
                action = .finish(.pass(response, removes: false))
            }
        }
    }

    /// Whether it is a part, or about something that is stored, where nobody has asked for that.
    private func fitsNoQuestion(_ response: HTTPResponse) -> Bool {
        let own = inquiry.request.fields
        switch response.status {
        case 206: return !own.contains("Range")
        case 304: return !forwarded.validates && !Self.conditions.contains { own.contains($0) }
        default: return false
        }
    }

    private static let conditions = ["If-None-Match", "If-Modified-Since"]

    /// Takes that there is no response, or no whole one.
    mutating func failed(_ error: FetchError, at moment: Moment) {
        if error.tellsOfServer, let stored = inquiry.stored,
            let answer = inquiry.policy.replacement(for: inquiry.judged, stored: stored, now: moment.date)
        {
            action = .finish(.stale(answer, error))
        } else if error.mayPass, let pause = nextPause(asked: nil, at: moment) {
            action = .pause(pause)
        } else {
            action = .finish(.fail(error))
        }
    }

    /// The pause is over.
    mutating func paused() {
        action = .send(forwarded.request)
    }

    /// What came can't be used: asks once more, without conditions.
    mutating func beginAnew() {
        guard !hasBegunAnew else {
            let place = inquiry.request.url.place
            action = .finish(.fail(FetchError(.protocolViolation, "\(place): the answer fits no question")))
            return
        }
        hasBegunAnew = true
        let (request, reason) = (inquiry.request, forwarded.reason)
        forwarded = inquiry.policy.forwarded(request, reason, validating: nil, mode: inquiry.mode)
        action = .send(forwarded.request)
    }

    // MARK: Pauses

    /// Statuses that may be others a moment later (RFC 9110, section 15).
    private static let passing: Set<Int> = [408, 429, 502, 503, 504]

    private mutating func pause(after response: HTTPResponse, at moment: Moment) -> Duration? {
        guard Self.passing.contains(response.status) else { return nil }
        let text = response.fields.first("Retry-After")
        let now = moment.date
        let seconds: Int? = text.flatMap { HTTPText.seconds($0) ?? HTTPDate($0, now: now)?.since(now) }
        return nextPause(asked: seconds.map { .seconds(max(0, $0)) }, at: moment)
    }

    /// How long to wait before it is sent again; nil: it is not.
    ///
    /// 0.2 s, doubled each time up to 10 s, and half of it by chance, so that many who have failed together
    /// don't come back together.
    private mutating func nextPause(asked: Duration?, at moment: Moment) -> Duration? {
        let isSafe = inquiry.request.method == "GET" || inquiry.request.method == "HEAD"
        guard isSafe, attempts < inquiry.retries else { return nil }
        let span = min(Duration.milliseconds(200 << min(attempts, 6)), .seconds(10))
        let pause = max(asked ?? .zero, span * (0.5 + moment.jitter / 2))
        if pause > max(inquiry.longestPause, .seconds(10)) { return nil }
        if let left = moment.left, pause >= left { return nil }
        attempts += 1
        return pause
    }
}

extension HTTPURL {
    /// For messages: without the query, which may hold secrets.
    var place: String { origin + path }
}
