// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// Administration of a cache's directory: limits, collections, verification, statistics, and explanations of keys.
///
/// ```swift
/// try cache.directory.updateLimits { $0.maximumSize = .gibibytes(1) }
/// let report = try await cache.blocking { try $0.directory.collect() }
/// ```
///
/// Programs that only use a cache need none of this: the janitor collects automatically.
public struct CacheDirectory: Sendable {
    let cache: SharedCache

    /// The absolute path of the directory; a relative one was made absolute when the cache was opened.
    public var path: String { cache.path }

    /// Runs `body` on the store; its errors report a deleted directory.
    func withStore<Value: ~Copyable>(
        _ body: (Store, Timestamp) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        try cache.withStore(body)
    }
}

extension SharedCache {
    /// The directory of the cache.
    public var directory: CacheDirectory { CacheDirectory(cache: self) }
}
