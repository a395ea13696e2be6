// SPDX-License-Identifier: Apache-2.0

/// What was done to answer a request, in one word.
enum FetchOutcome: String {
    /// It was there, and fresh.
    case hit
    /// It was there, and stale, but would do.
    case stale
    /// It was there, and the server has confirmed it.
    case revalidated
    /// It was downloaded.
    case fetched
    /// Another process has downloaded it, or another call.
    case joined
    /// Nothing was there that would do, and nobody was to be asked.
    case miss

    /// Reads it off a member of the field Cache-Status, RFC 9211: "diskcache; fwd=stale; fwd-status=304".
    init(cacheStatus: String) {
        let parameters = Self.parameters(of: cacheStatus)
        let detail = parameters["detail"] ?? ""
        if detail == "not-cached" {
            self = .miss
        } else if detail.hasPrefix("stale-if-error") {
            self = .stale
        } else if parameters["collapsed"] != nil {
            self = .joined
        } else if parameters["hit"] != nil {
            // With nothing left it is not fresh any more (RFC 9111, section 4.2).
            let isStale = parameters["ttl"].flatMap { Int($0) }.map { $0 <= 0 } ?? false
            self = isStale ? .stale : .hit
        } else {
            self = parameters["fwd-status"] == "304" ? .revalidated : .fetched
        }
    }

    /// What stands between semicolons outside of quotes, by name; empty without a value.
    ///
    /// The first is the cache's name.
    private static func parameters(of member: String) -> [String: String] {
        var (parts, isQuoted, isEscaped) = ([""], false, false)
        for character in member {
            if character == ";", !isQuoted {
                parts.append("")
                continue
            }
            if isQuoted, character == "\\", !isEscaped {
                isEscaped = true
            } else {
                if character == "\"", !isEscaped { isQuoted.toggle() }
                isEscaped = false
            }
            parts[parts.count - 1].append(character)
        }
        var parameters: [String: String] = [:]
        for part in parts.dropFirst() {
            let words = part.split(separator: "=", maxSplits: 1)
            guard let name = words.first else { continue }
            parameters[name.filter { $0 != " " }] = words.count > 1 ? String(words[1]) : ""
        }
        return parameters
    }
}

extension Fetched {
    var outcome: FetchOutcome { FetchOutcome(cacheStatus: cacheStatus) }

    /// As `fetch --json` writes it; what does not apply is left out.
    ///
    /// - Parameters:
    ///   - asked: the URL of the request, without credentials.
    ///   - file: where the body went.
    func json(asked: String, file: String?) -> JSON.Object {
        [
            "url": asked, "finalURL": url == asked ? nil : url, "status": status, "fields": fields,
            "length": length, "digest": digest, "age": age?.inSeconds, "outcome": outcome.rawValue,
            "cacheStatus": cacheStatus, "file": file,
        ]
    }

    /// The names in ``json(asked:file:)``, for the help.
    static let help = """
        JSON: an object for each URL on a line of its own, in their order: url; finalURL (after redirects),
        status, fields (each with name and value), length (bytes of the body), digest, age (seconds), outcome
        (hit, stale, revalidated, fetched, joined, miss), cacheStatus, file; or error instead of these. What does
        not apply is left out.
        """

    /// The head as HTTP/1.1 has it, RFC 9112, with what the cache did.
    var head: String {
        var lines = ["HTTP/1.1 \(status) \(StatusWords.reason(status))"]
        lines += fields.map { "\($0.name): \($0.value)" }
        if !fields.contains(where: { $0.name.lowercased() == "cache-status" }) {
            lines.append("Cache-Status: \(cacheStatus)")
        }
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }

    /// What a status of 300 and above means to whoever called; nil: it is none, or 304, for which the caller has
    /// asked by a condition.
    ///
    /// - Parameter place: what the message calls the URL.
    func refusal(_ place: String) -> NetworkFailure? {
        if status < 300 || status == 304 { return nil }
        // The cache's own, RFC 9111, section 5.2.1.7; a server's that is stored is a hit.
        if status == 504, outcome == .miss {
            let words = "nothing is stored that will do, and nobody may be asked"
            return NetworkFailure(.notStored, "\(place): \(words)")
        }
        let kind: NetworkFailure.Kind =
            switch status {
            case 404, 410: .notFound
            case 401, 402, 403, 407, 451: .forbidden
            case 408, 425, 429, 503: .notInTime
            default: .unreachable
            }
        return NetworkFailure(kind, "\(place): \(status) \(StatusWords.reason(status))")
    }
}

/// The reason phrases of RFC 9110 that people are likely to see.
enum StatusWords {
    private static let words = [
        200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information",
        204: "No Content", 206: "Partial Content", 300: "Multiple Choices", 301: "Moved Permanently",
        302: "Found", 303: "See Other", 304: "Not Modified", 307: "Temporary Redirect",
        308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden",
        404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable",
        407: "Proxy Authentication Required", 408: "Request Timeout", 410: "Gone", 412: "Precondition Failed",
        416: "Range Not Satisfiable", 425: "Too Early", 429: "Too Many Requests",
        451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented",
        502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
    ]

    static func reason(_ status: Int) -> String { words[status] ?? "Status \(status)" }
}
