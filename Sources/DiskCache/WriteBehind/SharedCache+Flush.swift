// SPDX-License-Identifier: Apache-2.0

import Platform

extension SharedCache {
    /// Waits until all puts of this cache so far are published or have failed; a failure is reported as an event.
    ///
    /// Only puts with ``CacheConfiguration/Writing/behind`` can be pending.
    ///
    /// - Parameter limit: the maximum time to wait; nil for no limit.
    /// - Returns: false if the limit passed first, and in a forked child of the process that opened the cache, since only
    ///   that process publishes its puts.
    @discardableResult
    public func flush(within limit: Duration? = nil) -> Bool {
        guard core.isOwn else { return false }
        return writeBehind.flush(until: limit.map { .now + .nanoseconds($0.saturatingNanoseconds) })
    }

    /// Waits, on a library thread, until all puts of this cache so far are published or have failed; returns false if
    /// `limit` passed first.
    @discardableResult
    public func flush(within limit: Duration? = nil) async -> Bool {
        await offload(on: .lengthy) { self.flush(within: limit) }
    }
}
