// SPDX-License-Identifier: Apache-2.0

import Platform

/// Which keys writers add to the outbox, for remote stores.
package enum RemoteNotes: UInt64, Sendable {
    /// None: no remote store is configured.
    case nothing = 0
    /// Keys whose change has to be sent.
    case changes = 1
    /// Keys whose remote entries are out of date: changes are not sent, so these entries must not be read.
    case avoidance = 2
}

/// The remote state that a new control file starts with.
struct RemoteMarks: Sendable, Equatable {
    var notes = RemoteNotes.nothing
    /// Remote entries that were created before this moment are not read; nil if all may be read.
    var barrier: Timestamp?
}
