// SPDX-License-Identifier: Apache-2.0

/// The result of testing one server.
package struct RemoteExamination: Sendable, Equatable {
    /// The server's address, without credentials.
    package var server: String
    /// The reason why the server could not be reached; nil if it responded.
    package var obstacle: String?
    /// The median of a few round trips.
    package var roundTrip: Duration?
    /// Whether the test object could be stored, or why not; nil if this machine must not write there.
    package var writing: Outcome?
    /// Whether the test object was returned unchanged.
    package var reading: Outcome?
    /// Whether the test object could be removed.
    package var removing: Outcome?
    /// The lead of the server's clock over this machine's; nil if the server did not report its time.
    package var clockSkew: Duration?

    /// The outcome of one operation.
    package enum Outcome: Sendable, Equatable {
        case done
        case failed(String)
    }

    /// Creates an examination without results.
    package init(_ server: String) {
        self.server = server
    }
}
