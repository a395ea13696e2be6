// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// What a cache takes on disk, and what keeps it in order: limits, collections, checks, counts, and what became of a key.
///
/// ```swift
/// try cache.directory.updateLimits { $0.maximumSize = .gibibytes(1) }
/// let report = try await cache.blocking { try $0.directory.collect() }
/// ```
///
/// Programs that only use a cache need none of this: the janitor collects by itself.
public struct CacheDirectory: Sendable {
    let cache: SharedCache

    /// The absolute path: a relative one was made absolute when the cache was opened.
    public var path: String { cache.path }

    /// Runs `body` on the store; its errors say if the directory is gone.
    func withStore<Value: ~Copyable>(
        _ body: (Store, Timestamp) throws(CacheError) -> Value
    ) throws(CacheError) -> Value {
        try cache.withStore(body)
    }
}

extension SharedCache {
    /// The directory that the cache is in.
    public var directory: CacheDirectory { CacheDirectory(cache: self) }
}
