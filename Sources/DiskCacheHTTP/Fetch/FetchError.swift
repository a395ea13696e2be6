// SPDX-License-Identifier: Apache-2.0

package import Platform
import Transport

/// An error that prevented a response.
///
/// An unsuccessful status, such as 404 or 500, is a response and not an error.
public struct FetchError: Error, Sendable, Equatable {
    /// The kind of error; more may be added.
    @nonexhaustive
    public enum Code: String, Sendable {
        /// The URL is not a valid http or https URL.
        case invalidURL
        /// The request can't be sent: its method, a field or its digest is invalid.
        case invalidRequest
        /// The server's name is unknown, or it accepts no connections.
        case unreachable
        /// The server can't be authenticated, or the encryption failed.
        case tls
        /// A time limit has passed.
        case timedOut
        /// The connection ended before the body did.
        case truncated
        /// The body or the head exceeds its maximum length.
        case tooLarge
        /// There are more redirects than the request allows.
        case tooManyRedirects
        /// A redirect leads to a scheme other than http and https.
        case unsupportedRedirect
        /// The response violates HTTP.
        case protocolViolation
        /// The body does not have the requested digest.
        case digestMismatch
        /// The body can't be written to its destination, or, for a reason other than lack of space, to a temporary file.
        case outputFailed
        /// The cache has no space for the temporary file that receives the body.
        case noSpace
        /// libcurl is not installed; the message names its package.
        case libraryMissing
        /// The status is not a 2xx, and the call can return only a body; see ``FetchError/status``.
        case unsuccessful
        /// Anything else.
        case other
    }

    /// The kind of error.
    public let code: Code
    /// One line without secrets: no query, user or password.
    public let message: String
    /// The status of the response, if there was one; 407 if a proxy requires authentication.
    public let status: Int?
    /// The cause, if a write failed; otherwise nil.
    package let cause: Errno?
    /// Whether the caller's time limit prevented a further attempt.
    var isCutShort = false
    /// Whether the error occurred before any of the request was sent.
    private(set) var isBeforeRequest: Bool

    init(_ code: Code, _ message: String, status: Int? = nil, cause: Errno? = nil) {
        self.code = code
        self.message = message
        self.status = status
        self.cause = cause
        isBeforeRequest =
            switch code {
            case .invalidURL, .invalidRequest, .unreachable, .tls, .libraryMissing: true
            default: false
            }
    }
}

extension FetchError: CustomStringConvertible {
    /// The same as ``message``.
    public var description: String { message }
}

extension FetchError {
    init(_ error: TransportError) {
        let code: Code =
            switch error.code {
            case .libraryMissing: .libraryMissing
            case .invalidRequest, .unsupportedScheme: .invalidRequest
            case .nameNotResolved, .connectionFailed, .proxyForbidden: .unreachable
            case .tls: .tls
            case .timedOut: .timedOut
            case .truncated: .truncated
            case .tooLarge, .headTooLarge: .tooLarge
            case .protocolViolation: .protocolViolation
            case .outputFailed: .outputFailed
            case .noSpace: .noSpace
            case .cancelled, .noResources, .other: .other
            }
        self.init(code, error.message, status: error.code == .proxyForbidden ? 407 : nil)
        isBeforeRequest = error.isBeforeRequest
    }

    /// Whether a retry may succeed.
    var mayPass: Bool {
        if status == 407 { return false }
        return switch code {
        case .unreachable, .timedOut, .truncated, .protocolViolation: true
        default: false
        }
    }

    /// Whether the server is unreachable or faulty, so that a stale response may be used instead.
    var tellsOfServer: Bool {
        switch code {
        case .unreachable, .timedOut, .truncated, .protocolViolation, .tls, .libraryMissing, .other: true
        default: false
        }
    }

    /// Returns the error of a write, to the destination of the body or to a temporary file.
    init(writing place: String, isDestination: Bool = false, _ cause: Errno) {
        let isFull = cause.isDiskFull
        let advice = isFull ? "make space there" : "check the path and its permissions"
        let code: Code = isFull && !isDestination ? .noSpace : .outputFailed
        self.init(code, "write \(place): \(cause): \(advice)", cause: cause)
    }
}
