// SPDX-License-Identifier: Apache-2.0

public import CacheStore
public import DiskCache
import Platform

extension SharedCache {
    /// Opens the cache at `path`, and shares its values with other machines through remote servers.
    ///
    /// If a value is neither in memory nor on disk, `get`, `value`, `hit` and the calls for many keys request it from the
    /// servers. For each key one thread of one process does so, for no longer than the limit. The value is verified, and
    /// stored on this machine with its original options, which then apply here, too. Puts and removals are queued in the
    /// directory and sent to the servers in the background; the queue outlives this process. If a server fails or is too
    /// slow, no process of the machine contacts it for a while; no call fails because of that.
    ///
    /// A value that was removed or replaced on this machine is never fetched from a server again. Other machines find it
    /// until their servers have the change. Once a process has opened a directory in this way, all processes that use it
    /// record their changes, until the directory's configuration says that its servers get none.
    ///
    /// ```swift
    /// import DiskCacheRemote
    ///
    /// let remote = CacheConfiguration.Remote(servers: ["redis://cache-1", "redis://cache-2"])
    /// let cache = try SharedCache(at: "/var/cache/thumbs", remote: remote)
    /// ```
    ///
    /// - Parameters:
    ///   - path: the directory.
    ///   - configuration: the configuration of this process.
    ///   - remote: the servers; nil for the servers in the directory's `config.json`, if any.
    /// - Throws: as ``SharedCache/init(at:configuration:)``; ``CacheError/Code/badConfiguration`` for an invalid
    ///   configuration of the servers; ``CacheError/Code/untrusted`` for a file of credentials that others may read. An
    ///   unreachable server is not an error.
    public convenience init(
        at path: String,
        configuration: CacheConfiguration = CacheConfiguration(),
        remote: CacheConfiguration.Remote?
    ) throws(CacheError) {
        try self.init(at: path, configuration: configuration) {
            (host: RemoteContext) throws(CacheError) -> (any RemoteTier)? in
            let store = host.store()
            var given = remote
            if given == nil { given = try Self.configured(in: store) }
            guard let present = given else { return nil }
            guard present.isActive else { return nil }
            return try ServerTier(present, host, isConfiguredInDirectory: remote == nil)
        }
    }

    private static func configured(in store: Store) throws(CacheError) -> CacheConfiguration.Remote? {
        guard let json = store.configuration.remote else { return nil }
        return try CacheConfiguration.Remote(json: json)
    }
}
