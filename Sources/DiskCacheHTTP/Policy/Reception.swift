// SPDX-License-Identifier: Apache-2.0

/// What to do with the origin's response.
package enum Reception: Sendable, Equatable {
    /// Keep it with its body, in the place of what was there.
    case store(Storing)
    /// The stored response with new fields, and what to answer; its bytes stay as they are.
    case renewed(StoredResponse, CachedAnswer)
    /// Hand it on. `removes`: what was stored is no longer right.
    case pass(removes: Bool)
    /// It is an error, and the stored response may take its place (RFC 5861, section 4).
    case stale(CachedAnswer)
    /// It speaks of a response that is not stored: ask again, without conditions (RFC 9111, section 4.3.4).
    case refetch
}

extension HTTPCachePolicy {
    /// What to do with a response to what was forwarded for `request`.
    package func receive(
        _ response: HTTPResponse, to request: HTTPRequest, forwarded: ForwardedRequest, stored: StoredResponse?,
        requested: HTTPDate, received: HTTPDate
    ) -> Reception {
        if response.status < 200 { return .pass(removes: false) }
        if [500, 502, 503, 504].contains(response.status), let stored,
            let answer = replacement(for: request, stored: stored, now: received)
        {
            return .stale(answer)
        }
        if response.status == 304 {
            return notModified(response, request, forwarded, stored, requested, received)
        }
        if request.method == "HEAD" { return head(response, request, stored, requested, received) }
        let storing = self.storing(response, to: request)
        if case .not = storing {
            // A new state of the resource that may not be kept ends the old one; an error of the server says nothing.
            return .pass(removes: forwarded.validates && response.status < 500)
        }
        return .store(storing)
    }

    /// What may be answered when the origin fails or can't be reached; nil if nothing may.
    package func replacement(for request: HTTPRequest, stored: StoredResponse, now: HTTPDate) -> CachedAnswer? {
        guard request.method == "GET" || request.method == "HEAD",
            mayReplaceError(stored, for: request, freshness(of: stored, now: now))
        else { return nil }
        return answer(request, from: stored, now: now)
    }

    private func notModified(
        _ response: HTTPResponse, _ request: HTTPRequest, _ forwarded: ForwardedRequest, _ stored: StoredResponse?,
        _ requested: HTTPDate, _ received: HTTPDate
    ) -> Reception {
        guard let stored, forwarded.validates else { return .pass(removes: false) }
        let asked = forwarded.request.fields.members(of: "If-None-Match")
        let new = Validators(response.fields, received: received)
        guard new.identify(stored.validators, isOnlyOne: asked.count <= 1) else {
            // The caller may have asked about a response of its own.
            let own = request.fields.members(of: "If-None-Match").compactMap(EntityTag.init)
            let isOwn = new.tag.map { tag in own.contains { $0.matchesWeakly(tag) } } ?? false
            return isOwn ? .pass(removes: false) : .refetch
        }
        let renewed = self.renewed(stored, by: response, requested, received)
        guard let answer = self.answer(request, from: renewed, now: received, isValidated: true) else { return .refetch }
        return .renewed(renewed, answer)
    }

    private func renewed(
        _ stored: StoredResponse, by response: HTTPResponse, _ requested: HTTPDate, _ received: HTTPDate
    ) -> StoredResponse {
        var renewed = stored
        renewed.fields = KeptFields.updated(stored.fields, with: response.fields)
        // Else the age would go on from the first response's.
        if !response.fields.contains("Date") { renewed.fields.set("Date", received.text) }
        if let age = response.fields.first("Age") { renewed.fields.set("Age", age) }
        renewed.requested = requested
        renewed.received = received
        return renewed
    }

    /// RFC 9111, section 4.3.5: the same state of the resource renews what is stored; another one ends it.
    private func head(
        _ response: HTTPResponse, _ request: HTTPRequest, _ stored: StoredResponse?, _ requested: HTTPDate,
        _ received: HTTPDate
    ) -> Reception {
        guard let stored, response.status == 200, case .complete(let length) = stored.body else {
            return .pass(removes: false)
        }
        let isSameLength = response.fields.first("Content-Length").map { $0 == String(length) } ?? true
        let new = Validators(response.fields, received: received)
        guard isSameLength, new.identify(stored.validators) else { return .pass(removes: true) }
        let renewed = self.renewed(stored, by: response, requested, received)
        guard let answer = self.answer(request, from: renewed, now: received, isValidated: true) else {
            return .pass(removes: false)
        }
        return .renewed(renewed, answer)
    }
}
