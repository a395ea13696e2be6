// SPDX-License-Identifier: Apache-2.0

import Platform

extension RemoteMarks {
    /// The length in bytes at which the outbox is full; records that do not fit are dropped.
    static let longestOutbox: Int64 = 12 << 20

    /// Creates the remote state of a directory from its outbox.
    ///
    /// If there is an outbox, the cache has used remote stores. Then writers record changes from the start, even if the
    /// first process that writes does not know of the remote stores. One system call.
    init(ofOutboxIn root: borrowing Directory) throws(Errno) {
        guard let status = try root.presentStatus(of: StoreLayout.outbox) else { return }
        notes = .avoidance
        if status.size >= Self.longestOutbox { barrier = .now }
    }
}
