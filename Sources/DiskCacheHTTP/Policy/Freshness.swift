// SPDX-License-Identifier: Apache-2.0

/// How old a stored response is, and how old it may become (RFC 9111, section 4.2), in seconds.
package struct Freshness: Sendable, Equatable {
    /// What the lifetime was taken from.
    package enum Source: Sendable, Equatable {
        case override, maximumAge, expires, heuristic, none
    }

    package let lifetime: Int
    package let age: Int
    package let source: Source

    /// Whether it may be used without a question.
    package var isFresh: Bool { lifetime > age }
    /// Until it is stale; below zero since then.
    package var remaining: Int { lifetime - age }
    /// Since it is stale.
    package var staleness: Int { max(0, age - lifetime) }
}

/// What a private cache does with responses: RFC 9111 where nothing else is chosen.
///
/// All of it are functions of their arguments, without clock, input and output.
package struct HTTPCachePolicy: Sendable, Equatable {
    /// How long a response is fresh that doesn't say it.
    package enum Heuristic: Sendable, Equatable {
        case none
        /// This part of the time since it was last changed, and no more seconds than that (section 4.2.2).
        case sinceModified(Double, most: Int)
    }

    /// How long, in seconds, a stale response may be used (RFC 5861).
    package struct Allowance: Sendable, Equatable {
        /// Where the response says nothing.
        package var unasked: Int
        /// However much the response allows.
        package var most: Int

        package init(unasked: Int = 0, most: Int = .max) {
            self.unasked = unasked
            self.most = most
        }
    }

    /// A tenth, as section 4.2.2 has it, and a day at most.
    package var heuristic = Heuristic.sinceModified(0.1, most: 86_400)
    /// Seconds for which each response is fresh from when it came, whatever it says; its no-store and
    /// no-cache count for nothing then.
    ///
    /// Errors (400 and above) are left to what they say themselves.
    package var lifetime: Int?
    package var staleWhileRevalidate = Allowance()
    package var staleIfError = Allowance()
    /// Whether requests with different credentials (``HTTPRequest/secrets``) never get each other's response.
    package var separatesCredentials = true

    package init() {}

    /// The statuses whose responses may be stored without a word about it (RFC 9110, section 15.1).
    package static let heuristicStatuses: Set<Int> = [
        200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501,
    ]

    /// How fresh it is at `now`.
    package func freshness(of stored: StoredResponse, now: HTTPDate) -> Freshness {
        let (lifetime, source) = lifetimeAndSource(of: stored)
        return Freshness(lifetime: lifetime, age: Self.age(of: stored, now: now), source: source)
    }

    private func lifetimeAndSource(of stored: StoredResponse) -> (Int, Freshness.Source) {
        if let lifetime = chosenLifetime(for: stored.status) {
            // Its age on arrival doesn't count.
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

    /// The lifetime that the caller has chosen; nil where the response's own counts.
    func chosenLifetime(for status: Int) -> Int? {
        status < 400 ? lifetime.map { min(max(0, $0), HTTPText.mostSeconds) } : nil
    }

    /// RFC 9111, section 4.2.3.
    ///
    /// A clock that was put back makes nothing younger than it came.
    package static func age(of stored: StoredResponse, now: HTTPDate) -> Int {
        ageOnArrival(of: stored) + max(0, now.since(stored.received))
    }

    /// By its Date and by its Age, whichever is more: a clock that is ahead, here or there, makes nothing
    /// younger.
    private static func ageOnArrival(of stored: StoredResponse) -> Int {
        let apparent = stored.received.since(stored.date)
        let said = stored.fields.members(of: "Age").first.flatMap(HTTPText.seconds) ?? 0
        let corrected = said + max(0, stored.received.since(stored.requested))
        return max(apparent, corrected)
    }

    /// Whether it may be used while stale at all (section 4.2.4).
    package func mayBeStale(_ stored: StoredResponse) -> Bool {
        !stored.control.contains("must-revalidate") && !mustValidate(stored)
    }

    /// Whether each use needs a validation (section 5.2.2.4).
    package func mustValidate(_ stored: StoredResponse) -> Bool {
        chosenLifetime(for: stored.status) == nil && stored.control.forbidsUnvalidatedUse
    }

    /// Whether it may be used while it is validated (RFC 5861, section 3).
    package func mayRevalidateBehind(_ stored: StoredResponse, _ freshness: Freshness) -> Bool {
        let most = allowed(staleWhileRevalidate, by: [stored.control], "stale-while-revalidate")
        return mayBeStale(stored) && freshness.staleness < most
    }

    /// Whether it may be used in the place of an error (RFC 5861, section 4), which a request can allow as
    /// well.
    ///
    /// Being fresh is not enough: then the request has asked for a validation. If it has done so by no-cache, what
    /// the response allows does not count (RFC 9111, section 5.2.1.4).
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
