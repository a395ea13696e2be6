// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import Platform

/// Counts the changes in a directory's outbox that no process has sent yet.
package final class OutboxBacklog: Sendable {
    private let view = OutboxView()

    /// Creates a backlog that has not read the outbox.
    package init() {}

    /// Returns the number of pending keys.
    ///
    /// Takes one system call if nothing was appended since the last call, else six.
    package func count(in store: Store) throws(CacheError) -> Int {
        do throws(Errno) {
            try view.follow(store.outbox)
        } catch {
            throw CacheError(errno: error, "read the outbox of", path: store.directory.path)
        }
        return view.count
    }
}
