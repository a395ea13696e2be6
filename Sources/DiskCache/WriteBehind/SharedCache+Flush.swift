// SPDX-License-Identifier: Apache-2.0

import Platform

extension SharedCache {
    /// Waits until all puts of this cache so far are published, or have failed, which the events tell.
    ///
    /// Only those with ``CacheConfiguration/Writing/behind`` can be late.
    ///
    /// - Parameter limit: how long to wait; nil: as long as it takes.
    /// - Returns: false where the limit passed first, and in a child that was forked from the process that has opened
    ///   the cache: what waits is published by that one.
    @discardableResult
    public func flush(within limit: Duration? = nil) -> Bool {
        guard core.isOwn else { return false }
        return writeBehind.flush(until: limit.map { .now + .nanoseconds($0.saturatingNanoseconds) })
    }
}
