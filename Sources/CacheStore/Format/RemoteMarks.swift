// SPDX-License-Identifier: Apache-2.0

/// The state of remote stores that a new control file starts with.
struct RemoteMarks: Sendable, Equatable {
    /// Whether writers record their changes in the outbox.
    var notesChanges = false
    /// The latest version that was drawn or taken from a server; none if the directory has never used remote stores.
    var clock = ChangeVersion.none
    /// Values of servers are taken only if their version is higher.
    var cleared = ChangeVersion.none
}
