// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import Platform

/// How much of a directory's outbox is still to be sent, by whichever process.
package final class OutboxBacklog: Sendable {
    private let view = OutboxView()

    /// With nothing read yet.
    package init() {}

    /// How many keys wait now.
    ///
    /// One system call where nothing was appended since the last time, else three more.
    package func count(in store: Store) throws(CacheError) -> Int {
        do throws(Errno) {
            try view.follow(store.outbox)
        } catch {
            throw CacheError(errno: error, "read the outbox of", path: store.directory.path)
        }
        return view.pending.count { $0.work != .avoid }
    }
}
