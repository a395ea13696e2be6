// SPDX-License-Identifier: Apache-2.0

package import DiskCache
package import FoundationEssentials

/// The access to other machines that the commands need.
///
/// `diskcache-net` provides it. `diskcache` has none: a static program can't load libcurl, and starts sooner without it. All
/// functions block the calling thread.
package protocol Network: Sendable {
    /// Opens a cache as its initializer does, together with the remote stores that its `config.json` names: gets also query
    /// them, and stored values are also uploaded.
    func open(_ path: String, _ configuration: CacheConfiguration) throws -> SharedCache

    /// Opens a cache for work on its remote stores; returns nil if its configuration names none.
    ///
    /// - Parameter limit: The time to wait for a response, regardless of `config.json`.
    func stores(
        of path: String,
        _ configuration: CacheConfiguration,
        limit: Duration
    ) throws -> (any Stores)?

    /// Returns a downloader into a cache.
    func downloads(in cache: SharedCache, _ security: FetchSecurity) -> any Downloads

    /// Gives the pending uploads of caches that this has opened one second to complete.
    ///
    /// Uploads that are still pending wait on disk for the next process.
    func finish()
}

/// The destination of a response's body.
package enum FetchTarget: Sendable, Equatable {
    /// A file, which is replaced atomically.
    case file(String)
    /// A descriptor, which stays open.
    case descriptor(Int32)
}

/// Downloads into a cache, several at a time.
package protocol Downloads: Sendable {
    /// Returns a response from the cache, or downloads it into the cache.
    ///
    /// - Parameters:
    ///   - target: The destination of a successful response's body, written once it is complete.
    ///   - progress: Called periodically while bytes arrive, on any thread.
    func fetch(
        _ order: FetchOrder,
        to target: FetchTarget,
        progress: @escaping @Sendable (DownloadProgress) -> Void
    ) throws(NetworkFailure) -> Fetched
}

/// The remote stores that a cache shares.
package protocol Stores: Sendable {
    /// The cache, whose gets query the stores, and whose puts and pending uploads go there.
    var cache: SharedCache { get }

    /// Whether this machine may write to the stores.
    var isWritable: Bool { get }

    /// Returns the current value of a key in the stores; nil if it is missing.
    ///
    /// It neither reads nor writes the disk.
    func look(_ key: String) -> Data?

    /// Returns the number of keys with pending uploads, of any process.
    func backlogCount() throws(CacheError) -> Int

    /// Queries each server, and stores, reads and removes a small test object there.
    func examine() throws(CacheError) -> [RemoteExamination]
}
