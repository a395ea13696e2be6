// SPDX-License-Identifier: Apache-2.0

/// Why something did not come from another machine, or did not get there.
package struct NetworkFailure: Error, Sendable, Equatable {
    /// What it means to whoever called the command.
    package enum Kind: Sendable, CaseIterable {
        /// A URL, or a field of a request, that can't be sent.
        case invalid
        /// Nothing may be asked, and nothing that will do is stored.
        case notStored
        /// The server has no such thing.
        case notFound
        /// Whoever asks may not have it.
        case forbidden
        /// The server is not there, is not who it should be, does not speak HTTP, or says that something is
        /// wrong with it.
        case unreachable
        /// It was not done in time, or is to be tried again later.
        case notInTime
        /// What came is too long, or not what it should be.
        case wrong
        /// The cache, or the file for the body, can't be read or written.
        case inputOutput
        /// There is no space for a body.
        case noSpace
        /// What needs networking is not installed.
        case missing
    }

    package let kind: Kind
    /// One line: what failed, why, and what to do.
    ///
    /// Without credentials.
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
