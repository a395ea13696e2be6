// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import FoundationEssentials
import RemoteStore

/// The remote stores that a cache shares.
final class SharedStores {
    /// The cache, whose gets query the stores, and whose puts and pending uploads go there.
    let cache: SharedCache
    private let remote: CacheConfiguration.Remote
    private let tier: ServerTier
    private let backlog = OutboxBacklog()

    /// Opens the stores.
    ///
    /// - Parameter remote: An active configuration, with the limit for each call.
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

    /// Returns the current value of a key in the stores; nil if it is missing.
    ///
    /// It neither reads nor writes the disk.
    func look(_ key: String) -> Data? {
        tier.look(Digest(ofKey: key), until: .now + remote.limit)?.bytes
    }

    /// Returns the number of keys with pending uploads, of any process.
    func backlogCount() throws(CacheError) -> Int {
        try cache.withStore { (store, _) throws(CacheError) in try backlog.count(in: store) }
    }
}
