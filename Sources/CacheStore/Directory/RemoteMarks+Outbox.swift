// SPDX-License-Identifier: Apache-2.0

import Platform

extension RemoteMarks {
    /// Bytes: a longer outbox is full, and records that did not fit were dropped.
    static let longestOutbox: Int64 = 12 << 20

    /// The remote state of a directory as its outbox shows it.
    ///
    /// If there is an outbox, the cache has used remote stores. Then changes are noted from the start, even if the first process
    /// that writes does not know of the stores. One system call.
    init(ofOutboxIn root: borrowing Directory) throws(Errno) {
        guard let status = try root.presentStatus(of: StoreLayout.outbox) else { return }
        notes = .avoidance
        if status.size >= Self.longestOutbox { barrier = .now }
    }
}
