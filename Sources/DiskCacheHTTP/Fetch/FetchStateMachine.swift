// SPDX-License-Identifier: Apache-2.0

/// The state machine of an exchange with the origin server: what to send, when to retry, and how to use the response.
///
/// It is pure: it does no input or output, and gets times and random numbers as arguments.
struct FetchStateMachine: Sendable {
    /// The request and the terms that apply to it.
    struct Inquiry: Sendable {
        var policy: HTTPCachePolicy
        /// The request as the caller made it.
        var request: HTTPRequest
        /// The request with the caller's options as directives; these directives are not sent.
        var judged: HTTPRequest
        var stored: StoredResponse?
        var mode: FetchMode
        /// The maximum number of retries.
        var retries: Int
        /// The longest pause that a server may ask for, but at least 10 seconds; if it asks for a longer one, there is no
        /// retry.
        var longestPause: Duration
    }

    /// What to do next.
    enum Action: Sendable, Equatable {
        case send(HTTPRequest)
        case pause(Duration)
        case finish(Ending)
    }

    /// The outcome of the exchange.
    enum Ending: Sendable, Equatable {
        /// Store the response with the received body, and answer with it.
        case store(HTTPResponse, requested: HTTPDate, received: HTTPDate)
        /// The stored response is valid; update its fields to these.
        case renew(StoredResponse, CachedAnswer)
        /// Answer with the response without storing it; `removes` tells whether to remove the stored response, which is
        /// no longer valid.
        case pass(HTTPResponse, removes: Bool)
        /// Answer with the stored response, because of an error.
        case stale(CachedAnswer, FetchError?)
        case fail(FetchError)
    }

    /// The current time, and other inputs that the state machine can't determine itself.
    struct Moment: Sendable {
        var date: HTTPDate
        /// The time left until the caller's limit; nil without a limit.
        var left: Duration?
        /// A random number from 0 to 1.
        var jitter: Double
    }

    let inquiry: Inquiry
    private(set) var forwarded: ForwardedRequest
    private(set) var action: Action
    /// The status code of the last response.
    private(set) var status: Int?
    private var attempts = 0
    /// Whether the time limit left no time for a further attempt.
    private var isCutShort = false
    private var hasBegunAnew = false

    init(_ inquiry: Inquiry, _ forwarded: ForwardedRequest) {
        self.inquiry = inquiry
        self.forwarded = forwarded
        action = .send(forwarded.request)
    }

    /// Handles a response whose body has been received.
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

    /// Returns whether the response is a 206 or 304 that the request did not ask for.
    ///
    /// Only GET and HEAD can ask for one; other requests must not be sent again.
    private func fitsNoQuestion(_ response: HTTPResponse) -> Bool {
        guard inquiry.request.isRepeatable else { return false }
        let own = inquiry.request.fields
        switch response.status {
        case 206: return !own.contains("Range")
        case 304: return !forwarded.validates && !Self.conditions.contains { own.contains($0) }
        default: return false
        }
    }

    private static let conditions = ["If-None-Match", "If-Modified-Since"]

    /// Handles a failed transfer: no response, or an incomplete one.
    mutating func failed(_ error: FetchError, at moment: Moment) {
        if error.tellsOfServer, let stored = inquiry.stored,
            let answer = inquiry.policy.replacement(for: inquiry.judged, stored: stored, now: moment.date)
        {
            action = .finish(.stale(answer, error))
        } else if error.mayPass, let pause = nextPause(asked: nil, at: moment) {
            action = .pause(pause)
        } else {
            var error = error
            error.isCutShort = isCutShort
            action = .finish(.fail(error))
        }
    }

    /// Continues after the pause.
    mutating func paused() {
        action = .send(forwarded.request)
    }

    /// Sends the request again, without conditions, because the response is unusable; fails at the second call.
    mutating func beginAnew() {
        guard !hasBegunAnew else {
            let place = inquiry.request.url.place
            action = .finish(.fail(FetchError(.protocolViolation, "\(place): unexpected status 206 or 304")))
            return
        }
        hasBegunAnew = true
        let (request, reason) = (inquiry.request, forwarded.reason)
        forwarded = inquiry.policy.forwarded(request, reason, validating: nil, mode: inquiry.mode)
        action = .send(forwarded.request)
    }

    // MARK: Pauses

    /// Status codes of errors that may be temporary (RFC 9110, section 15).
    private static let passing: Set<Int> = [408, 429, 502, 503, 504]

    private mutating func pause(after response: HTTPResponse, at moment: Moment) -> Duration? {
        guard Self.passing.contains(response.status) else { return nil }
        let text = response.fields.first("Retry-After")
        let now = moment.date
        let seconds: Int? = text.flatMap { HTTPText.seconds($0) ?? HTTPDate($0, now: now)?.since(now) }
        return nextPause(asked: seconds.map { .seconds(max(0, $0)) }, at: moment)
    }

    /// Returns the pause before the next attempt, or nil if there is no further attempt.
    ///
    /// The pause starts at 0.2 s and doubles each time, up to 10 s. Half of it is random, so that clients that failed at
    /// the same time do not retry at the same time.
    private mutating func nextPause(asked: Duration?, at moment: Moment) -> Duration? {
        guard inquiry.request.isRepeatable, attempts < inquiry.retries else { return nil }
        let span = min(Duration.milliseconds(200 << min(attempts, 6)), .seconds(10))
        let pause = max(asked ?? .zero, span * (0.5 + moment.jitter / 2))
        if pause > max(inquiry.longestPause, .seconds(10)) { return nil }
        if let left = moment.left, pause >= left {
            isCutShort = true
            return nil
        }
        attempts += 1
        return pause
    }
}

extension HTTPRequest {
    /// Whether the request may be sent again without the caller's consent.
    fileprivate var isRepeatable: Bool { method == "GET" || method == "HEAD" }
}

extension HTTPURL {
    /// The URL for messages, without the query, which may hold secrets.
    var place: String { origin + path }
}
