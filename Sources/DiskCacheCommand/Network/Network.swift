// SPDX-License-Identifier: Apache-2.0

package import DiskCache

/// The access to other machines that commands of this machine need.
///
/// `diskcache-net` provides it. `diskcache` has none: a static program can't load libcurl, and starts sooner without it. All
/// functions block the calling thread.
package protocol Network: Sendable {
    /// Opens a cache as its initializer does, together with the remote stores that its `config.json` names: gets also query
    /// them, and stored values are also uploaded.
    func open(_ path: String, _ configuration: CacheConfiguration) throws -> SharedCache

    /// Queries each server of a configuration, stores, reads and removes a small object there, and returns the findings.
    func examine(_ remote: CacheConfiguration.Remote) throws(CacheError) -> [Finding]

    /// Gives the pending uploads of caches that this has opened one second to complete.
    ///
    /// Uploads that are still pending wait on disk for the next process.
    func finish()
}
