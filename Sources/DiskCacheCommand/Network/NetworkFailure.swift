// SPDX-License-Identifier: Apache-2.0

/// The reason why a transfer from or to another machine failed.
package struct NetworkFailure: Error, Sendable, Equatable {
    /// The kind of failure, for the caller of the command.
    package enum Kind: Sendable, CaseIterable {
        /// The URL, or a field of a request, is invalid.
        case invalid
        /// Requests are not allowed, and no suitable response is stored.
        case notStored
        /// The server does not have the resource.
        case notFound
        /// Access is denied.
        case forbidden
        /// The server is unreachable, fails authentication, does not speak HTTP, or reports an internal error.
        case unreachable
        /// The request timed out, or must be retried later.
        case notInTime
        /// The response is too long, or invalid.
        case wrong
        /// The cache, or the file for the body, can't be read or written.
        case inputOutput
        /// The disk has no space for a body.
        case noSpace
        /// The program for networking is not installed.
        case missing
    }

    package let kind: Kind
    /// One line: the failure, its cause, and a remedy.
    ///
    /// It contains no credentials.
    package let message: String

    package init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }
}

extension ExitStatus {
    init(_ kind: NetworkFailure.Kind) {
        self =
            switch kind {
            case .invalid: .usage
            case .notStored, .notFound: .miss
            case .forbidden: .permission
            case .unreachable, .missing: .unavailable
            case .notInTime: .temporary
            case .wrong: .dataError
            case .inputOutput: .inputOutput
            case .noSpace: .cannotCreate
            }
    }
}
