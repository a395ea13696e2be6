// SPDX-License-Identifier: Apache-2.0

package import DiskCache

/// The access to other machines, for commands that need it.
///
/// `diskcache-net` provides it. `diskcache` does not: a static program can't load libcurl, and starts faster without it.
/// All functions block the calling thread.
package protocol Network: Sendable {
    /// Opens a cache, together with the remote stores in its `config.json`: gets also query them, and puts are uploaded
    /// to them.
    func open(_ path: String, _ configuration: CacheConfiguration) throws -> SharedCache

    /// Tests each server of a configuration with a small object, and returns the findings.
    func examine(_ remote: CacheConfiguration.Remote) throws(CacheError) -> [Finding]

    /// Waits up to one second for the pending uploads of caches that ``open(_:_:)`` has opened.
    ///
    /// Uploads that are still pending stay on disk for the next process.
    func finish()
}
