// SPDX-License-Identifier: Apache-2.0

import Platform
import Transport

/// Why there is no response.
///
/// A status that is not to one's liking, 404 or 500, is a response and no error.
public struct FetchError: Error, Sendable, Equatable {
    /// What went wrong; more may be added.
    @nonexhaustive
    public enum Code: String, Sendable {
        /// It is no URL of http or https.
        case invalidURL
        /// It can't be sent as it is: its method, a field, its digest.
        case invalidRequest
        /// The server's name is unknown, or it accepts no connections.
        case unreachable
        /// The server is not who it should be, or the encryption failed.
        case tls
        /// A limit of time has passed.
        case timedOut
        /// The connection ended before the body did.
        case truncated
        /// The body or the head is longer than it may be.
        case tooLarge
        /// More redirects than may be followed.
        case tooManyRedirects
        /// A redirect to something other than http and https.
        case unsupportedRedirect
        /// The answer is not HTTP.
        case protocolViolation
        /// The body does not have the digest that was asked for.
        case digestMismatch
        /// The body can't be written to its place, or to a temporary file.
        case outputFailed
        /// There is no space for the body in its place, or for the temporary file that it is received into.
        case noSpace
        /// libcurl is not installed; the message names its package.
        case libraryMissing
        /// The response tells of no success, where only a body can be given out; see ``FetchError/status``.
        case unsuccessful
        /// Anything else.
        case other
    }

    /// What went wrong.
    public let code: Code
    /// One line without secrets: no query, no user, no password.
    public let message: String
    /// The status of the response, if there was one; 407 where a proxy wants to know who asks.
    public let status: Int?

    init(_ code: Code, _ message: String, status: Int? = nil) {
        self.code = code
        self.message = message
        self.status = status
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
            case .invalidRequest, .unsupportedScheme, .sourceFailed: .invalidRequest
            case .nameNotResolved, .connectionFailed, .proxyForbidden: .unreachable
            case .tls: .tls
            case .timedOut: .timedOut
            case .truncated: .truncated
            case .tooLarge, .headTooLarge: .tooLarge
            case .tooManyRedirects: .tooManyRedirects
            case .protocolViolation: .protocolViolation
            case .outputFailed: .outputFailed
            case .noSpace: .noSpace
            case .cancelled, .noResources, .other: .other
            }
        self.init(code, error.message, status: error.code == .proxyForbidden ? 407 : nil)
    }

    /// Whether it may go well a moment later.
    var mayPass: Bool {
        if status == 407 { return false }
        return switch code {
        case .unreachable, .timedOut, .truncated, .protocolViolation: true
        default: false
        }
    }

    /// Whether it says that the server can't be reached or does not do what it should, in whose place
    /// something stale may be used.
    var tellsOfServer: Bool {
        switch code {
        case .unreachable, .timedOut, .truncated, .protocolViolation, .tls, .libraryMissing, .other: true
        default: false
        }
    }

    init(writing place: String, _ cause: Errno) {
        let isFull = cause.tellsOfFullDisk
        let advice = isFull ? "make space there" : "check the path and its permissions"
        self.init(isFull ? .noSpace : .outputFailed, "write \(place): \(cause): \(advice)")
    }
}
