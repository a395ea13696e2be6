// SPDX-License-Identifier: Apache-2.0

/// What to do with the origin's response.
package enum Reception: Sendable, Equatable {
    /// Keep it with its body, in place of a stored response.
    case store(Storing)
    /// The stored response with new fields, and what to answer; its bytes stay as they are.
    case renewed(StoredResponse, CachedAnswer)
    /// Hand it on. `removes`: the stored response is not right any more.
    case pass(removes: Bool)
    /// It is an error, and the stored response may take its place (RFC 5861, section 4).
    case stale(CachedAnswer)
    /// It speaks of a response that is not stored: ask again, without conditions (RFC 9111, section 4.3.4).
    case refetch
}

extension HTTPCachePolicy {
    /// What to do with a response to what was forwarded for `request`.
    package func receive(
        _ response: HTTPResponse,
        to request: HTTPRequest,
        forwarded: ForwardedRequest,
        stored: StoredResponse?,
        requested: HTTPDate,
        received: HTTPDate
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
        switch storing {
        case .complete: return .store(storing)
        case .part:
            // A part doesn't take the place of the whole that it is from.
            if let stored, stored.isComplete, stored.hasBytes(of: response, received: received) {
                return .pass(removes: false)
            }
            return .store(storing)
        case .not(let refusal): return .pass(removes: stored != nil && isNewState(response, refusal))
        }
    }

    /// Whether a response that is not kept shows that what is stored is out of date: not one that is refused
    /// for what was asked, and no error but that nothing is there any more.
    private func isNewState(_ response: HTTPResponse, _ refusal: Storing.Refusal) -> Bool {
        switch refusal {
        case .method, .requestForbids, .unusableRange: false
        default: response.status < 400 || response.status == 404 || response.status == 410
        }
    }

    /// What may be answered when the origin fails or can't be reached; nil if nothing may.
    package func replacement(
        for request: HTTPRequest,
        stored: StoredResponse,
        now: HTTPDate
    ) -> CachedAnswer? {
        guard request.method == "GET" || request.method == "HEAD",
            mayReplaceError(stored, for: request, freshness(of: stored, now: now))
        else { return nil }
        return answer(request, from: stored, now: now)
    }

    private func notModified(
        _ response: HTTPResponse,
        _ request: HTTPRequest,
        _ forwarded: ForwardedRequest,
        _ stored: StoredResponse?,
        _ requested: HTTPDate,
        _ received: HTTPDate
    ) -> Reception {
        guard let stored, forwarded.validates else { return .pass(removes: false) }
        // It may be used, but not to keep anything: so it comes as a response of its own.
        if forbidsStoring(response) || variesOtherwise(response, stored) { return .refetch }
        let asked = forwarded.request.fields.members(of: "If-None-Match")
        let new = Validators(response.fields, received: received)
        guard new.identify(stored.validators, isOnlyOne: asked.count <= 1) else {
            // The caller may have asked about a response of its own.
            let own = request.fields.members(of: "If-None-Match").compactMap(EntityTag.init)
            let isOwn = new.tag.map { tag in own.contains { $0.matchesWeakly(tag) } } ?? false
            return isOwn ? .pass(removes: false) : .refetch
        }
        let renewed = stored.renewed(by: response, requested: requested, received: received)
        let answer = self.answer(request, from: renewed, now: received, isValidated: true)
        return answer.map { .renewed(renewed, $0) } ?? .refetch
    }

    /// Whether other fields choose now than those by which the stored response was chosen (RFC 9111, section 4.1).
    private func variesOtherwise(_ response: HTTPResponse, _ stored: StoredResponse) -> Bool {
        response.fields.contains("Vary") && VaryRule(response.fields) != VaryRule(stored.fields)
    }

    /// RFC 9111, section 4.3.5: the same state of the resource renews what is stored; another one ends it.
    private func head(
        _ response: HTTPResponse,
        _ request: HTTPRequest,
        _ stored: StoredResponse?,
        _ requested: HTTPDate,
        _ received: HTTPDate
    ) -> Reception {
        guard let stored, response.status == 200, case .complete(let length) = stored.body else {
            return .pass(removes: false)
        }
        let isSameLength = response.contentLength ?? length == length
        let new = Validators(response.fields, received: received)
        guard isSameLength, new.agree(with: stored.validators), !forbidsStoring(response),
            !variesOtherwise(response, stored)
        else {
            return .pass(removes: true)
        }
        let renewed = stored.renewed(by: response, requested: requested, received: received)
        let answer = self.answer(request, from: renewed, now: received, isValidated: true)
        return answer.map { .renewed(renewed, $0) } ?? .pass(removes: false)
    }
}

extension StoredResponse {
    /// With the fields of a newer response about the same bytes (RFC 9111, section 3.2), and as old as that.
    func renewed(by response: HTTPResponse, requested: HTTPDate, received: HTTPDate) -> StoredResponse {
        var renewed = self
        renewed.fields = KeptFields.updated(fields, with: response.fields)
        // Else the age would go on from the first response's.
        if !response.fields.contains("Date") { renewed.fields.set("Date", received.text) }
        renewed.requested = requested
        renewed.received = received
        return renewed
    }
}
