// SPDX-License-Identifier: Apache-2.0

/// A response made from a stored one.
package struct CachedAnswer: Sendable, Equatable {
    package var status: Int
    package var fields: HTTPFields
    /// The range of the whole body to send; nil to send no body.
    package var bytes: Range<Int>?
    package var freshness: Freshness
}

/// A request to forward to the origin server.
package struct ForwardedRequest: Sendable, Equatable {
    package var request: HTTPRequest
    package var reason: CacheStatus.Forward
    /// Whether the request has conditions that name the stored response, so that a 304 revalidates it.
    package var validates: Bool
}

/// How to handle a request.
package enum Decision: Sendable, Equatable {
    case answer(CachedAnswer)
    /// Answer now, and validate in the background (RFC 5861, section 3).
    case answerAndRevalidate(CachedAnswer, ForwardedRequest)
    case forward(ForwardedRequest)
    /// Answer with status 504: the mode does not allow a request, and no stored response is usable.
    case unavailable
}

extension HTTPCachePolicy {
    private enum Use { case answer, behind, validate(CacheStatus.Forward) }

    /// Returns how to handle a request, given the stored response that its fields select.
    ///
    /// - Parameter hasVariants: Whether responses are stored for this URL, but none of them matches the request.
    package func decide(
        _ request: HTTPRequest,
        stored: StoredResponse?,
        hasVariants: Bool = false,
        mode: FetchMode,
        now: HTTPDate
    ) -> Decision {
        let control = CacheControl(request.fields)
        let isLocal = mode == .offline || mode == .onlyIfCached || control.contains("only-if-cached")
        func forward(_ reason: CacheStatus.Forward, validating: StoredResponse? = nil) -> Decision {
            if isLocal { return .unavailable }
            return .forward(forwarded(request, reason, validating: validating, mode: mode))
        }
        guard request.method == "GET" || request.method == "HEAD" else { return forward(.method) }
        // Only the origin server can evaluate these (section 4.3.2).
        let isForOrigin = ["If-Match", "If-Unmodified-Since"].contains { request.fields.contains($0) }
        if isForOrigin || control.contains("no-store") { return forward(.bypass) }
        guard let stored else { return forward(hasVariants ? .varyMiss : .uriMiss) }
        guard let answer = self.answer(request, from: stored, now: now) else { return forward(.partial) }
        switch use(of: stored, answer.freshness, request, mode) {
        case .answer: return .answer(answer)
        case .behind:
            if isLocal { return .answer(answer) }
            return .answerAndRevalidate(answer, forwarded(request, .stale, validating: stored, mode: mode))
        case .validate(let reason):
            return forward(reason, validating: mode == .reload ? nil : stored)
        }
    }

    private func use(
        of stored: StoredResponse,
        _ freshness: Freshness,
        _ request: HTTPRequest,
        _ mode: FetchMode
    ) -> Use {
        let insisting = Use.validate(freshness.isFresh ? .request : .stale)
        if mode == .reload { return insisting }
        if mustValidate(stored) { return .validate(.stale) }
        if mode == .revalidate {
            // RFC 8246, sections 2 and 3: with https no intermediary can have added `immutable`.
            let isImmutable = stored.control.contains("immutable") && request.url.scheme == "https"
            return isImmutable && freshness.isFresh ? .answer : insisting
        }
        if asksForValidation(request, freshness) { return insisting }
        if freshness.isFresh { return .answer }
        guard mayBeStale(stored) else { return .validate(.stale) }
        let control = CacheControl(request.fields)
        let most = control.allowsAnyStaleness ? .max : control.validSeconds("max-stale") ?? -1
        if freshness.staleness <= most || mode == .cacheFirst || mode == .offline { return .answer }
        return mayRevalidateBehind(stored, freshness) ? .behind : .validate(.stale)
    }

    /// Returns whether the request's own directives (section 5.2.1) reject a response of this age.
    private func asksForValidation(_ request: HTTPRequest, _ freshness: Freshness) -> Bool {
        let control = CacheControl(request.fields)
        if request.forbidsUnvalidatedUse { return true }
        // An invalid number counts as the strictest value. With `max-age=0` clients request validation, even of a
        // response that was just received.
        let oldest = control.contains("max-age") ? control.validSeconds("max-age") ?? 0 : .max
        let least = control.contains("min-fresh") ? control.validSeconds("min-fresh") ?? .max : .min
        return oldest == 0 || freshness.age > oldest || freshness.remaining < least
    }

    /// Returns the request to forward to the origin server, with the validators of the stored response (section 4.3.1).
    ///
    /// With validators it has no Range field: the range is answered from the whole body. The validators are omitted if a
    /// 304 would not refer to the stored response: if the stored body is partial, if conditions do not apply to the
    /// stored status (RFC 9110, section 13.2.1), and if the request asks whether any representation exists
    /// (`If-None-Match: *`).
    package func forwarded(
        _ request: HTTPRequest,
        _ reason: CacheStatus.Forward,
        validating stored: StoredResponse?,
        mode: FetchMode
    ) -> ForwardedRequest {
        var forwarded = request
        if mode == .reload {
            let isKept = CacheControl(request.fields).contains("no-store")
            forwarded.fields.set("Cache-Control", isKept ? "no-cache, no-store" : "no-cache")
        }
        if mode == .revalidate, !request.fields.contains("Cache-Control") {
            forwarded.fields.set("Cache-Control", "max-age=0")
        }
        let tags = request.fields.members(of: "If-None-Match")
        guard let stored, !stored.validators.isEmpty, case .complete = stored.body,
            (200..<300).contains(stored.status), tags != ["*"]
        else {
            return ForwardedRequest(request: forwarded, reason: reason, validates: false)
        }
        forwarded.fields.remove(["Range", "If-Range", "If-Modified-Since"])
        if let tag = stored.validators.tag {
            let asked = tags.filter { $0 != tag.text } + [tag.text]
            forwarded.fields.set("If-None-Match", asked.joined(separator: ", "))
        }
        if let modified = stored.validators.modified { forwarded.fields.set("If-Modified-Since", modified) }
        return ForwardedRequest(request: forwarded, reason: reason, validates: true)
    }
}

extension HTTPCachePolicy {
    /// Returns an answer to this request from the stored response, fresh or stale; nil if requested bytes are not stored.
    ///
    /// - Parameter isValidated: Whether the origin server has just validated the stored response.
    package func answer(
        _ request: HTTPRequest,
        from stored: StoredResponse,
        now: HTTPDate,
        isValidated: Bool = false
    ) -> CachedAnswer? {
        let freshness = self.freshness(of: stored, now: now)
        var answer = CachedAnswer(status: stored.status, fields: stored.fields, freshness: freshness)
        if !isValidated { answer.fields.remove(stored.control.fieldsToValidate) }
        answer.fields.set("Age", String(freshness.age))
        // The recipient adds a missing Date (RFC 9110, section 6.6.1).
        if !answer.fields.contains("Date") { answer.fields.set("Date", stored.received.text) }
        if stored.status == 200 || stored.status == 206, stored.isHeld(by: request, now: now) == true {
            answer.status = 304
            answer.fields.remove(StoredFields.ofBody)
            return answer
        }
        guard request.method == "GET" else {
            guard case .complete = stored.body else { return nil }
            return answer
        }
        return filled(answer, for: request, from: stored)
    }

    private func filled(
        _ answer: CachedAnswer,
        for request: HTTPRequest,
        from stored: StoredResponse
    ) -> CachedAnswer? {
        var answer = answer
        let wanted = stored.status == 200 || stored.status == 206 ? range(request, stored) : nil
        switch stored.body {
        case .complete(let length):
            answer.bytes = 0..<length
            guard let wanted else { return answer }
            let bytes = wanted.bytes(of: length)
            answer.status = bytes == nil ? 416 : 206
            answer.bytes = bytes
            answer.fields.set("Content-Range", ContentRange(bytes: bytes, length: length).text)
        case .part(let held, let length):
            guard let length, let bytes = wanted?.bytes(of: length), held.lowerBound <= bytes.lowerBound,
                bytes.upperBound <= held.upperBound
            else { return nil }
            answer.status = 206
            answer.bytes = bytes
            answer.fields.set("Content-Range", ContentRange(bytes: bytes, length: length).text)
        }
        answer.fields.set("Content-Length", String(answer.bytes?.count ?? 0))
        return answer
    }

    /// Returns the requested range, unless the request has an If-Range that does not match the stored response (RFC 9110,
    /// section 13.1.5).
    private func range(_ request: HTTPRequest, _ stored: StoredResponse) -> RequestedRange? {
        guard let range = request.fields.first("Range").flatMap(RequestedRange.init) else { return nil }
        guard let condition = request.fields.first("If-Range") else { return range }
        let validators = stored.validators
        if condition.hasPrefix("\"") || condition.hasPrefix("W/") {
            guard let asked = EntityTag(condition), let own = validators.tag else { return nil }
            return asked.matchesStrongly(own) ? range : nil
        }
        return validators.isDateStrong && condition == validators.modified ? range : nil
    }
}
