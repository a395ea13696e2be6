// SPDX-License-Identifier: Apache-2.0

import Platform

extension SharedCache {
    /// Waits until all puts of this cache so far are published, or have failed, which the events tell.
    ///
    /// Only those with ``WritePolicy/behind`` can be late.
    ///
    /// - Parameter limit: how long to wait; nil: as long as it takes.
    /// - Returns: false where the limit passed first.
    @discardableResult
    public func flush(within limit: Duration? = nil) -> Bool {
        writeBehind.flush(until: limit.map { .now + .nanoseconds($0.saturatingNanoseconds) })
    }
}
