// SPDX-License-Identifier: Apache-2.0

package import DiskCache
package import FoundationEssentials

/// What the commands need of other machines.
///
/// `diskcache-net` hands it in. `diskcache` has none: a static program can't load libcurl, and starts sooner
/// without. Everything in here blocks the calling thread.
package protocol Network: Sendable {
    /// Opens a cache as its initializer does, together with the stores of other machines that its
    /// `config.json` names: gets look there too, and what is stored goes there.
    func open(_ path: String, _ configuration: CacheConfiguration) throws -> SharedCache

    /// The same for work on these stores; nil: none are named.
    ///
    /// - Parameter limit: how long to wait for an answer, whatever `config.json` says.
    func stores(
        of path: String,
        _ configuration: CacheConfiguration,
        limit: Duration
    ) throws -> (any Stores)?

    /// What downloads into a cache.
    func downloads(in cache: SharedCache, _ security: FetchSecurity) -> any Downloads

    /// Gives what was stored in caches that this has opened a second to be sent on.
    ///
    /// What is not sent by then waits on disk for the next process.
    func finish()
}

/// Where the body of a response goes.
package enum FetchTarget: Sendable, Equatable {
    /// A file, which is replaced in one step.
    case file(String)
    /// A descriptor, which stays open.
    case descriptor(Int32)
}

/// Downloads into a cache, several at once.
package protocol Downloads: Sendable {
    /// Answers from the cache, or downloads into it.
    ///
    /// - Parameters:
    ///   - target: where the body of a success goes, once it is there as a whole.
    ///   - progress: called now and then while bytes arrive, on any thread.
    func fetch(
        _ order: FetchOrder,
        to target: FetchTarget,
        progress: @escaping @Sendable (DownloadProgress) -> Void
    ) throws(NetworkFailure) -> Fetched
}

/// The stores of other machines that a cache shares.
package protocol Stores: Sendable {
    /// The cache. Its gets look there, its puts go there, and so does what is noted for it.
    var cache: SharedCache { get }

    /// Whether this machine may write there.
    var isWritable: Bool { get }

    /// What is there under a key at present; nil: nothing. Neither looks at the disk nor keeps anything
    /// there.
    func look(_ key: String) -> Data?

    /// How many keys are still to be sent, by whichever process.
    func backlogCount() throws(CacheError) -> Int

    /// Asks each server, and stores, reads and removes a small object of its own there.
    func examine() throws(CacheError) -> [RemoteExamination]
}
