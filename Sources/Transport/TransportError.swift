// SPDX-License-Identifier: Apache-2.0

package import Platform

/// Why a transfer came to nothing.
///
/// A status that is not to one's liking, 404 or 500, is a response and no error.
package struct TransportError: Error, Sendable, Equatable {
    /// What went wrong.
    package enum Code: String, Sendable {
        /// libcurl is not installed; the message names its package.
        case libraryMissing
        /// The request can't be sent as it is: its method, its URL, a header.
        case invalidRequest
        /// Neither http nor https, of the request or of a redirect.
        case unsupportedScheme
        /// The server's name, or the proxy's, is unknown.
        case nameNotResolved
        /// Nobody accepts connections there, or not in time.
        case connectionFailed
        /// The proxy wants to know who asks before it connects (407).
        case proxyForbidden
        /// The server is not who it should be, or wants another certificate, or the encryption failed.
        case tls
        /// The deadline passed, or nothing came for as long as the request allows.
        case timedOut
        /// The task was cancelled.
        case cancelled
        /// The connection ended before the response did.
        case truncated
        /// The body is longer than the request allows.
        case tooLarge
        /// The heads of the responses are longer than the request allows.
        case headTooLarge
        /// More redirects than the request allows.
        case tooManyRedirects
        /// What came is not HTTP, or an encoding that can't be undone.
        case protocolViolation
        /// The descriptor that is sent could not be read, or is shorter than was said; see
        /// ``TransportError/cause``.
        case sourceFailed
        /// The disk, or a quota, is full; what was written until then stays.
        case noSpace
        /// The descriptor for the body could not be written; see ``TransportError/cause``.
        case outputFailed
        /// No memory, no descriptor or no thread.
        case noResources
        /// Whatever else libcurl reports.
        case other
    }

    /// What went wrong.
    package let code: Code
    /// One line, without what is secret in the URL.
    package let message: String
    /// The error of the system call that failed, if one did.
    package let cause: Errno?

    package init(_ code: Code, _ message: String, cause: Errno? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }
}

extension TransportError {
    /// Whether the transfer ended before any of the request was sent.
    package var isBeforeRequest: Bool {
        switch code {
        case .libraryMissing, .invalidRequest, .unsupportedScheme, .nameNotResolved, .connectionFailed,
            .proxyForbidden,
            .tls, .noResources:
            true
        case .timedOut, .cancelled, .truncated, .tooLarge, .headTooLarge, .tooManyRedirects,
            .protocolViolation,
            .sourceFailed, .noSpace, .outputFailed, .other:
            false
        }
    }
}

extension TransportError: CustomStringConvertible {
    package var description: String { message }
}

extension TransportError {
    /// The one error where libcurl can't be opened, with what the loader says.
    static func libraryMissing(_ reason: String) -> Self {
        Self(.libraryMissing, "HTTP and TLS need libcurl.so.4: install the package libcurl4 (\(reason))")
    }

    /// - Parameters:
    ///   - curl: a CURLcode, libcurl-errors(3).
    ///   - words: what curl says of it.
    ///   - place: the URL without its secrets.
    init(curl: Int32, _ words: String, _ place: String) {
        let code: Code =
            switch curl {
            // Also what is said of other versions and of a status that is none.
            case 1: words.hasPrefix("Protocol") ? .unsupportedScheme : .protocolViolation
            case 3: .invalidRequest
            case 5, 6: .nameNotResolved
            case 7, 65, 97: .connectionFailed
            // Also what is said of a chunk without a length.
            case 56 where words.contains("chunked-encoding"): .protocolViolation
            case 18, 52, 55, 56: .truncated
            case 27: .noResources
            case 28: .timedOut
            case 35, 53, 54, 58, 59, 60, 66, 77, 80, 82, 83, 90, 91, 98: .tls
            case 47: .tooManyRedirects
            // 43 is what some versions say of a field that they can't take apart.
            case 8, 16, 43, 61, 92: .protocolViolation
            case 63: .tooLarge
            default: .other
            }
        self.init(code, "\(place): \(Self.withoutCredentials(words))")
    }

    /// Curl quotes a proxy that it does not understand, with user and password.
    private static func withoutCredentials(_ words: String) -> String {
        guard let at = words.lastIndex(of: "@") else { return words }
        let begin = words[..<at].firstRange(of: "://")?.upperBound ?? words.startIndex
        return words[..<begin] + String(words[words.index(after: at)...])
    }
}
