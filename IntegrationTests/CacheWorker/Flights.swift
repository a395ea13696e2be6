// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Synchronization

/// Values that are computed where there are none.
enum Flights {
    /// The value of `key`, which is `value` where there is none, made in so many microseconds, and whether that
    /// was so.
    static func value(
        of key: String,
        in cache: SharedCache,
        orCompute value: Data,
        within microseconds: UInt32
    ) -> (value: Data, isComputed: Bool) {
        let flag = Flag()
        let found = cache.value(forKey: key) {
            flag.isSet.store(true, ordering: .relaxed)
            usleep(microseconds)
            return value
        }
        return (found, flag.isSet.load(ordering: .relaxed))
    }

    private final class Flag: Sendable {
        let isSet = Atomic<Bool>(false)
    }
}
