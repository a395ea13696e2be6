// SPDX-License-Identifier: Apache-2.0

/// How to handle the origin server's response.
package enum ResponseDisposition: Sendable, Equatable {
    /// Store the response with its body, and replace any stored response.
    case store(Storability)
    /// Update the fields of the stored response, and return the answer; the stored bytes do not change.
    case renewed(StoredResponse, CachedAnswer)
    /// Return the response without storing it; `removes` tells whether to remove the stored response, which is no longer
    /// valid.
    case pass(removes: Bool)
    /// The response is an error; return the stored response instead (RFC 5861, section 4).
    case stale(CachedAnswer)
    /// The response does not refer to the stored response: send the request again, without conditions (RFC 9111, section
    /// 4.3.4).
    case refetch
}

extension HTTPCachePolicy {
    /// Returns how to handle the response to the request that was forwarded on behalf of `request`.
    package func receive(
        _ response: HTTPResponse,
        to request: HTTPRequest,
        forwarded: ForwardedRequest,
        stored: StoredResponse?,
        requested: HTTPDate,
        received: HTTPDate
    ) -> ResponseDisposition {
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
            // The stored body is complete, and includes this part.
            if let stored, stored.isComplete, stored.hasBytes(of: response, received: received) {
                return .pass(removes: false)
            }
            return .store(storing)
        case .not(let refusal): return .pass(removes: stored != nil && isNewState(response, refusal))
        }
    }

    /// Returns whether a response that is not stored shows that the stored response is outdated.
    ///
    /// It does not if it was refused because of the request, or if it is an error other than 404 and 410.
    private func isNewState(_ response: HTTPResponse, _ refusal: Storability.Refusal) -> Bool {
        switch refusal {
        case .method, .requestForbids, .unusableRange: false
        default: response.status < 400 || response.status == 404 || response.status == 410
        }
    }

    /// Returns the answer from the stored response if the origin server fails or is unreachable; nil if RFC 5861 does not
    /// allow one.
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
    ) -> ResponseDisposition {
        guard let stored, forwarded.validates else { return .pass(removes: false) }
        // This 304 must not update the stored response, so the complete response is requested.
        if forbidsStoring(response) || variesOtherwise(response, stored) { return .refetch }
        let asked = forwarded.request.fields.members(of: "If-None-Match")
        let new = Validators(response.fields, received: received)
        // The caller's tags are sent, too: a 304 without a tag may refer to one of them.
        let isOnlyOne = asked.isEmpty || asked == [stored.validators.tag?.text]
        guard new.identify(stored.validators, isOnlyOne: isOnlyOne) else {
            // The 304 may refer to an entity tag in the caller's own condition: then the caller already has the response.
            let own = request.fields.members(of: "If-None-Match").compactMap(EntityTag.init)
            let isOwn = new.tag.map { tag in own.contains { $0.matchesWeakly(tag) } } ?? false
            return isOwn ? .pass(removes: false) : .refetch
        }
        let renewed = stored.renewed(by: response, requested: requested, received: received)
        let answer = self.answer(request, from: renewed, now: received, isValidated: true)
        return answer.map { .renewed(renewed, $0) } ?? .refetch
    }

    /// Returns whether the new Vary names other fields than the stored one (RFC 9111, section 4.1).
    private func variesOtherwise(_ response: HTTPResponse, _ stored: StoredResponse) -> Bool {
        response.fields.contains("Vary") && VaryRule(response.fields) != VaryRule(stored.fields)
    }

    /// Handles a response to HEAD (RFC 9111, section 4.3.5).
    ///
    /// If the stored response is still current, it is updated; otherwise it is removed.
    private func head(
        _ response: HTTPResponse,
        _ request: HTTPRequest,
        _ stored: StoredResponse?,
        _ requested: HTTPDate,
        _ received: HTTPDate
    ) -> ResponseDisposition {
        guard let stored, response.status == 200, case .complete(let length) = stored.body,
            !CacheControl(request.fields).contains("no-store")
        else { return .pass(removes: false) }
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
    /// Returns this response with the fields and times of a newer response for the same bytes (RFC 9111, section 3.2).
    func renewed(by response: HTTPResponse, requested: HTTPDate, received: HTTPDate) -> StoredResponse {
        var renewed = self
        renewed.fields = StoredFields.updated(fields, with: response.fields)
        // Without Date, the age would be computed from the old one.
        if !response.fields.contains("Date") { renewed.fields.set("Date", received.text) }
        renewed.requested = requested
        renewed.received = received
        return renewed
    }
}
