// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand
import DiskCacheHTTP

/// How a request was answered, in one word.
enum FetchOutcome: String {
    /// A fresh response was stored.
    case hit
    /// A stale response was stored, and the request accepted it.
    case stale
    /// A response was stored, and the server confirmed that it is still valid.
    case revalidated
    /// The response was downloaded.
    case fetched
    /// Another process, or another call in this process, downloaded the response.
    case joined
    /// No acceptable response is stored, and the mode forbids to query the server.
    case miss

    /// Derives the outcome from the cache's status.
    init(_ status: CacheStatus) {
        let detail = status.detail ?? ""
        if detail == "not-cached" {
            self = .miss
        } else if detail.hasPrefix("stale-if-error") {
            self = .stale
        } else if status.isHit {
            // A response whose remaining lifetime is 0 is no longer fresh (RFC 9111, section 4.2).
            let isStale = status.timeToLive.map { $0 <= 0 } ?? false
            self = isStale ? .stale : .hit
        } else if status.isCollapsed {
            self = .joined
        } else {
            self = status.forwardStatus == 304 ? .revalidated : .fetched
        }
    }
}

extension FetchResponse {
    var outcome: FetchOutcome { FetchOutcome(cacheStatus) }

    /// Returns the object that `fetch --json` writes; fields that do not apply are omitted.
    ///
    /// - Parameters:
    ///   - asked: The URL of the request, without credentials.
    ///   - file: The destination of the body.
    ///   - error: The message if the status means a failure.
    func json(asked: String, file: String?, error: String? = nil) -> JSON.Object {
        let prefix = "sha256:"
        let digits = digest.map { $0.hasPrefix(prefix) ? String($0.dropFirst(prefix.count)) : $0 }
        return [
            "url": asked, "finalURL": url == asked ? nil : url, "status": status,
            "fields": fields.map { ["name": $0.name, "value": $0.value] }, "length": length,
            "digest": digits, "age": age?.inSeconds, "outcome": outcome.rawValue,
            "cacheStatus": cacheStatus.description, "file": file, "error": error,
        ]
    }

    /// The head in the format of HTTP/1.1 (RFC 9112), with the cache status.
    var head: String {
        var lines = ["HTTP/1.1 \(status) \(StatusWords.reason(status))"]
        lines += fields.map { "\($0.name): \($0.value)" }
        if !fields.contains(where: { $0.name.lowercased() == "cache-status" }) {
            lines.append("Cache-Status: \(cacheStatus)")
        }
        return lines.joined(separator: "\r\n") + "\r\n\r\n"
    }

    /// Returns the failure that a status from 300 means; nil for other statuses.
    ///
    /// A 304 is not a failure, because the caller requested it by a condition.
    ///
    /// - Parameter place: The URL as shown in the message.
    func refusal(_ place: String) -> Failure? {
        if status < 300 || status == 304 { return nil }
        // The cache generates this 504 (RFC 9111, section 5.2.1.7); a stored 504 of a server would be a hit.
        if status == 504, outcome == .miss {
            return Failure(.miss, "\(place): no usable response is stored, and the server must not be asked")
        }
        let exit: ExitStatus =
            switch status {
            case 404, 410: .miss
            case 401, 402, 403, 407, 451: .permission
            case 408, 425, 429, 503: .temporary
            default: .unavailable
            }
        return Failure(exit, "\(place): \(status) \(StatusWords.reason(status))")
    }
}

extension Failure {
    /// Creates the failure for a request that got no response.
    init(_ error: FetchError) {
        let status: ExitStatus =
            switch error.code {
            case .invalidURL, .invalidRequest: .usage
            case .timedOut: .temporary
            case .tooLarge, .digestMismatch: .dataError
            case .outputFailed: .inputOutput
            case .noSpace: .cannotCreate
            // A proxy requires authentication.
            case .unreachable where error.status == 407: .permission
            // The server or an intermediary failed, or libcurl is missing.
            default: .unavailable
            }
        self.init(status, error.message)
    }
}

/// The reason phrases of RFC 9110 that users are likely to see.
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
