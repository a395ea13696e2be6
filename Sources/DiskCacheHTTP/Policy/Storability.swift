// SPDX-License-Identifier: Apache-2.0

/// Whether a response may be stored (RFC 9111, section 3), and why not.
package enum Storability: Sendable, Equatable {
    case complete
    /// Only this part of the body may be stored.
    case part(ContentRange)
    case not(Refusal)

    package enum Refusal: Sendable, Equatable {
        case method, status, condition, requestForbids, responseForbids, variesByAnything, nothingSaid,
            unusableRange
    }
}

extension HTTPCachePolicy {
    /// Final statuses whose caching requirements this cache implements (sections 3 and 5.2.2.3).
    package static let understoodStatuses: Set<Int> = [
        200, 203, 204, 206, 300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410,
        411, 412, 413, 414, 415, 416, 417, 421, 422, 426, 451, 500, 501, 502, 503, 504, 505,
    ]

    /// Returns whether the response to this request may be stored.
    package func storing(_ response: HTTPResponse, to request: HTTPRequest) -> Storability {
        let control = CacheControl(response.fields)
        let isChosen = chosenLifetime(for: response.status) != nil
        guard request.method == "GET" else { return .not(.method) }
        guard response.status >= 200, response.status != 304 else { return .not(.status) }
        if isAboutCondition(response, request) { return .not(.condition) }
        if control.contains("must-understand"), !Self.understoodStatuses.contains(response.status) {
            return .not(.status)
        }
        if CacheControl(request.fields).contains("no-store") { return .not(.requestForbids) }
        if forbidsStoring(response) { return .not(.responseForbids) }
        if VaryRule(response.fields) == .nothingMatches { return .not(.variesByAnything) }
        let isSaid =
            isChosen || control.contains("public") || control.contains("private")
            || control.contains("max-age") || response.fields.contains("Expires")
        guard isSaid || Self.heuristicStatuses.contains(response.status) else { return .not(.nothingSaid) }
        guard response.status == 206 else { return .complete }
        guard let range = response.fields.first("Content-Range").flatMap(ContentRange.init),
            range.bytes != nil
        else { return .not(.unusableRange) }
        return .part(range)
    }

    /// Returns whether the response might differ without the conditions and the range of this request.
    ///
    /// Statuses 412, 416 and 428 always refer to the conditions or the range. Of the other statuses, only success is
    /// known to be the same without them.
    private func isAboutCondition(_ response: HTTPResponse, _ request: HTTPRequest) -> Bool {
        [412, 416, 428].contains(response.status)
            || request.isConditional && !(200..<300).contains(response.status)
    }

    /// Returns whether the response's no-store directive applies.
    ///
    /// It does not if the response also has must-understand (section 5.2.2.3) or a chosen lifetime. ``storing(_:to:)``
    /// refuses a response with must-understand whose status is not understood.
    func forbidsStoring(_ response: HTTPResponse) -> Bool {
        forbidsStoring(CacheControl(response.fields), response.status)
    }

    /// Does the same for the parts of a response.
    func forbidsStoring(_ control: CacheControl, _ status: Int) -> Bool {
        control.contains("no-store") && !control.contains("must-understand")
            && chosenLifetime(for: status) == nil
    }

    /// Returns the URLs whose stored responses this response invalidates (section 4.4).
    ///
    /// If an unsafe request did not fail, these are its URL and the URLs in Location and Content-Location that have the
    /// same origin.
    package func invalidated(by response: HTTPResponse, to request: HTTPRequest) -> [HTTPURL] {
        guard !request.isSafe, (200..<400).contains(response.status) else { return [] }
        let named = ["Location", "Content-Location"].compactMap { response.fields.first($0) }
            .compactMap(request.url.resolving)
            .filter { $0.origin == request.url.origin }
        return named.reduce(into: [request.url]) { if !$0.contains($1) { $0.append($1) } }
    }
}
