// SPDX-License-Identifier: Apache-2.0

/// The age and the freshness lifetime of a stored response (RFC 9111, section 4.2), in seconds.
package struct Freshness: Sendable, Equatable {
    /// What determined the freshness lifetime.
    package enum Source: Sendable, Equatable {
        case override, maximumAge, expires, heuristic, none
    }

    package let lifetime: Int
    package let age: Int
    package let source: Source

    /// Whether the response may be used without validation.
    package var isFresh: Bool { lifetime > age }
    /// Seconds until the response becomes stale; negative afterward.
    package var remaining: Int { lifetime - age }
    /// Seconds since the response became stale.
    package var staleness: Int { max(0, age - lifetime) }
}

/// The policy of a private cache: RFC 9111, modified by the options that are set.
///
/// All functions are pure: they depend only on their arguments, and use no clock and no input or output.
package struct HTTPCachePolicy: Sendable, Equatable {
    /// The freshness lifetime of responses that do not specify one.
    package enum Heuristic: Sendable, Equatable {
        case none
        /// This fraction of the time between the last modification and the response, at most `most` seconds (section
        /// 4.2.2).
        case sinceModified(Double, most: Int)
    }

    /// How long, in seconds, a stale response may be used (RFC 5861).
    package struct Allowance: Sendable, Equatable {
        /// The limit for a response that does not specify one.
        package var unasked: Int
        /// The upper limit, even for a response that specifies a longer time.
        package var most: Int

        package init(unasked: Int = 0, most: Int = .max) {
            self.unasked = unasked
            self.most = most
        }
    }

    /// The heuristic lifetime; by default a tenth of the time since the last modification, as in section 4.2.2, and at
    /// most a day.
    package var heuristic = Heuristic.sinceModified(0.1, most: 86_400)
    /// The freshness lifetime of each response, in seconds after it was received; overrides the response's own lifetime,
    /// no-store and no-cache.
    ///
    /// Nil to use the response's own lifetime. Errors (statuses from 400) always keep their own.
    package var lifetime: Int?
    package var staleWhileRevalidate = Allowance()
    package var staleIfError = Allowance()
    /// Whether requests with different credentials (``HTTPRequest/secrets``) never share a response.
    package var separatesCredentials = true

    package init() {}

    /// The statuses whose responses are heuristically cacheable (RFC 9110, section 15.1).
    package static let heuristicStatuses: Set<Int> = [
        200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501,
    ]

    /// Returns the freshness of the stored response at `now`.
    package func freshness(of stored: StoredResponse, now: HTTPDate) -> Freshness {
        let (lifetime, source) = lifetimeAndSource(of: stored)
        return Freshness(lifetime: lifetime, age: Self.age(of: stored, now: now), source: source)
    }

    private func lifetimeAndSource(of stored: StoredResponse) -> (Int, Freshness.Source) {
        if let lifetime = chosenLifetime(for: stored.status) {
            // The chosen lifetime begins on arrival, so the age on arrival does not count.
            return (lifetime + Self.ageOnArrival(of: stored), .override)
        }
        switch stored.control.seconds("max-age") {
        case .seconds(let seconds): return (seconds, .maximumAge)
        case .invalid: return (0, .maximumAge)
        case nil: break
        }
        if let text = stored.fields.first("Expires") {
            let moment = HTTPDate(text, now: stored.received)
            return (max(0, moment?.since(stored.date) ?? 0), .expires)
        }
        return heuristicLifetime(of: stored)
    }

    private func heuristicLifetime(of stored: StoredResponse) -> (Int, Freshness.Source) {
        guard case .sinceModified(let part, let most) = heuristic, !stored.fields.hasPragmaNoCache,
            Self.heuristicStatuses.contains(stored.status) || stored.control.contains("public"),
            let text = stored.fields.first("Last-Modified"),
            let modified = HTTPDate(text, now: stored.received), modified < stored.date
        else { return (0, .none) }
        let span = min(part * Double(stored.date.since(modified)), Double(most))
        return (max(0, Int(span)), .heuristic)
    }

    /// Returns the lifetime that the caller has chosen, or nil if the response's own applies.
    func chosenLifetime(for status: Int) -> Int? {
        status < 400 ? lifetime.map { min(max(0, $0), HTTPText.mostSeconds) } : nil
    }

    /// Returns the current age (RFC 9111, section 4.2.3).
    ///
    /// If the clock is set back, the age does not fall below the age on arrival.
    package static func age(of stored: StoredResponse, now: HTTPDate) -> Int {
        ageOnArrival(of: stored) + max(0, now.since(stored.received))
    }

    /// Returns the age on arrival according to Date or Age, whichever is greater.
    ///
    /// A clock that is ahead, here or at the server, does not make the response seem younger than its Age.
    private static func ageOnArrival(of stored: StoredResponse) -> Int {
        let apparent = stored.received.since(stored.date)
        let said = stored.fields.members(of: "Age").first.flatMap(HTTPText.seconds) ?? 0
        let corrected = said + max(0, stored.received.since(stored.requested))
        return max(apparent, corrected)
    }

    /// Returns whether the response may ever be used while it is stale (section 4.2.4).
    package func mayBeStale(_ stored: StoredResponse) -> Bool {
        !stored.control.contains("must-revalidate") && !mustValidate(stored)
    }

    /// Returns whether the response must be validated before each use (section 5.2.2.4).
    ///
    /// Also if it says no-store: then it was stored for a caller who had chosen its lifetime.
    package func mustValidate(_ stored: StoredResponse) -> Bool {
        guard chosenLifetime(for: stored.status) == nil else { return false }
        return stored.control.forbidsUnvalidatedUse || forbidsStoring(stored.control, stored.status)
    }

    /// Returns whether the response may be used while it is validated in the background (RFC 5861, section 3).
    package func mayRevalidateBehind(_ stored: StoredResponse, _ freshness: Freshness) -> Bool {
        let most = allowed(staleWhileRevalidate, by: [stored.control], "stale-while-revalidate")
        return mayBeStale(stored) && freshness.staleness < most
    }

    /// Returns whether the response may be used instead of an error (RFC 5861, section 4); the request can also allow
    /// this.
    ///
    /// Freshness alone is not sufficient, because a fresh response was only forwarded if the request demands validation.
    /// If it demands that with no-cache, the response's own stale-if-error does not apply (RFC 9111, section 5.2.1.4).
    package func mayReplaceError(
        _ stored: StoredResponse,
        for request: HTTPRequest,
        _ freshness: Freshness
    ) -> Bool {
        let isForbidden = request.forbidsUnvalidatedUse
        let controls = [CacheControl(request.fields)] + (isForbidden ? [] : [stored.control])
        var allowance = staleIfError
        if isForbidden { allowance.unasked = 0 }
        let most = allowed(allowance, by: controls, "stale-if-error")
        return mayBeStale(stored) && freshness.staleness < most
    }

    private func allowed(_ allowance: Allowance, by controls: [CacheControl], _ name: String) -> Int {
        let asked = controls.filter { $0.contains(name) }.map { $0.validSeconds(name) ?? 0 }.max()
        return min(asked ?? allowance.unasked, allowance.most)
    }
}
