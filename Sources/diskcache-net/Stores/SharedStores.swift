// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import RemoteStore

/// The remote stores of a cache.
final class SharedStores {
    /// The cache, whose gets query the stores, and whose puts are uploaded to them.
    let cache: SharedCache
    private let remote: CacheConfiguration.Remote
    private let tier: ServerTier
    private let backlog = OutboxBacklog()

    /// Opens the stores.
    ///
    /// - Parameter remote: An active configuration, with the time limit of each call.
    init(
        _ path: String,
        _ configuration: CacheConfiguration,
        _ remote: CacheConfiguration.Remote
    ) throws(CacheError) {
        var made: ServerTier?
        cache = try SharedCache(at: path, configuration: configuration) {
            (host: RemoteContext) throws(CacheError) -> (any RemoteTier)? in
            let tier = try ServerTier(remote, host)
            made = tier
            return tier
        }
        guard let made else {
            throw CacheError(.closed, "share values between machines: there is no tier: try again")
        }
        tier = made
        self.remote = remote
    }

    /// Whether this machine may write to the stores.
    var isWritable: Bool { remote.mode == .readWrite }

    /// Returns the value that the stores have for a key; nil if they have none.
    ///
    /// Neither reads nor writes the value on disk.
    func look(_ key: String) -> Data? {
        tier.look(Digest(ofKey: key), until: .now + remote.limit)?.bytes
    }

    /// Returns the number of keys with pending uploads, including those of other processes.
    func backlogCount() throws(CacheError) -> Int {
        try cache.withStore { (store, _) throws(CacheError) in try backlog.count(in: store) }
    }
}
