// SPDX-License-Identifier: Apache-2.0

/// What came of asking one server.
package struct RemoteExamination: Sendable, Equatable {
    /// Its address, without credentials.
    package var server: String
    /// Why it could not be asked at all; nil: it answered.
    package var obstacle: String?
    /// The median of a few.
    package var roundTrip: Duration?
    /// Whether the small object could be stored, or why not; nil: nobody is to write there.
    package var writing: Outcome?
    /// Whether it came back as it was.
    package var reading: Outcome?
    /// Whether it could be removed.
    package var removing: Outcome?
    /// How far the server's clock is ahead of this machine's; nil: it did not say.
    package var clockSkew: Duration?

    /// Whether something could be done.
    package enum Outcome: Sendable, Equatable {
        case done
        case failed(String)
    }

    /// Nothing is known yet.
    package init(_ server: String) {
        self.server = server
    }
}
