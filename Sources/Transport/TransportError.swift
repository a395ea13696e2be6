// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The reason why a transfer failed.
///
/// An unsuccessful status, such as 404 or 500, is a response and not an error.
package struct TransportError: Error, Sendable, Equatable {
    /// The kind of error.
    package enum Code: String, Sendable {
        /// libcurl is not installed; the message names its package.
        case libraryMissing
        /// The request can't be sent: its method, its URL or a field is invalid.
        case invalidRequest
        /// The scheme of the request, or of a redirect, is neither http nor https.
        case unsupportedScheme
        /// The name of the server or the proxy can't be resolved.
        case nameNotResolved
        /// The server or the proxy accepts no connection, or the proxy can't connect to the server; for a
        /// ``StreamSocket`` also if the server's name can't be resolved.
        case connectionFailed
        /// The proxy requires authentication before it connects (407).
        case proxyForbidden
        /// The server can't be authenticated, or requires another certificate, or the encryption failed.
        case tls
        /// The deadline or the limit for connecting has passed, or no data, or too little, was transferred within the
        /// request's limit.
        case timedOut
        /// The task was cancelled.
        case cancelled
        /// The connection ended before the response did.
        case truncated
        /// The body is longer than the request allows.
        case tooLarge
        /// The heads of the responses are longer than the request allows.
        case headTooLarge
        /// The response is not HTTP, or its encoding can't be decoded.
        case protocolViolation
        /// The disk, or a quota, is full; the bytes that were written remain.
        case noSpace
        /// The descriptor for the body can't be written; see ``TransportError/cause``.
        case outputFailed
        /// No memory, descriptor or thread is available.
        case noResources
        /// Any other error of libcurl.
        case other
    }

    /// The kind of error.
    package let code: Code
    /// One line, without the secrets in the URL.
    package let message: String
    /// The error of the failed system call, if any.
    package let cause: Errno?
    /// Whether any of the request was sent: if a kept connection breaks, libcurl sends the request again over a new one,
    /// which may fail earlier.
    package let hasSent: Bool

    package init(_ code: Code, _ message: String, cause: Errno? = nil, hasSent: Bool = false) {
        self.code = code
        self.message = message
        self.cause = cause
        self.hasSent = hasSent
    }
}

extension TransportError {
    /// Whether the error occurred before any of the request was sent.
    package var isBeforeRequest: Bool {
        if hasSent { return false }
        return switch code {
        case .libraryMissing, .invalidRequest, .unsupportedScheme, .nameNotResolved, .connectionFailed,
            .proxyForbidden, .tls:
            true
        // Memory can be exhausted at any time.
        case .timedOut, .cancelled, .truncated, .tooLarge, .headTooLarge, .protocolViolation,
            .noSpace, .outputFailed, .noResources, .other:
            false
        }
    }
}

extension TransportError: CustomStringConvertible {
    package var description: String { message }
}

extension TransportError {
    /// Returns the error for a libcurl that can't be opened, with the loader's message.
    static func libraryMissing(_ reason: String) -> Self {
        Self(.libraryMissing, "HTTP and TLS need libcurl.so.4: install the package libcurl4 (\(reason))")
    }

    /// Creates the error for a CURLcode.
    ///
    /// - Parameters:
    ///   - curl: a CURLcode, libcurl-errors(3).
    ///   - words: libcurl's message.
    ///   - place: the URL without its secrets.
    init(curl: Int32, _ words: String, _ place: String, hasSent: Bool = false) {
        let code: Code =
            switch curl {
            // libcurl also reports 1 for other HTTP versions and for an invalid status.
            case 1: words.hasPrefix("Protocol") ? .unsupportedScheme : .protocolViolation
            case 3: .invalidRequest
            case 5, 6: .nameNotResolved
            case 7, 65, 97: .connectionFailed
            // libcurl also reports 56 for a chunk without a length.
            case 56 where words.contains("chunked-encoding"): .protocolViolation
            case 18, 52, 55, 56: .truncated
            case 27: .noResources
            case 28: .timedOut
            case 35, 53, 54, 58, 59, 60, 66, 77, 80, 82, 83, 90, 91, 98: .tls
            // Some versions report 43 for a field that they can't parse.
            case 8, 16, 43, 61, 92: .protocolViolation
            case 63: .tooLarge
            default: .other
            }
        self.init(code, "\(place): \(Self.withoutCredentials(words))", hasSent: hasSent)
    }

    /// Returns libcurl's message without a user and password: it quotes the URL of an invalid proxy completely.
    private static func withoutCredentials(_ words: String) -> String {
        guard let at = words.lastIndex(of: "@") else { return words }
        let begin = words[..<at].firstRange(of: "://")?.upperBound ?? words.startIndex
        return words[..<begin] + String(words[words.index(after: at)...])
    }
}
