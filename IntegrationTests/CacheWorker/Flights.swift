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
        within microseconds: UInt32,
        by form: Form
    ) -> (value: Data, isComputed: Bool) {
        let flag = Flag()
        let compute: @Sendable () -> Data = {
            flag.isSet.store(true, ordering: .relaxed)
            usleep(microseconds)
            return value
        }
        let found: Data?
        do {
            switch form {
            case .value: found = cache.value(forKey: key, orCompute: compute)
            case .hit: found = try cache.hit(forKey: key) { _ in .value(compute()) }?.value
            case .batch: found = try cache.values(forKeys: [key]) { _ in [key: compute()] }[key]
            }
        } catch {
            fatalError("\(error)")
        }
        guard let found else { fatalError("no value") }
        return (found, flag.isSet.load(ordering: .relaxed))
    }

    /// The calls that compute once.
    enum Form: CaseIterable {
        case value, hit, batch
    }

    private final class Flag: Sendable {
        let isSet = Atomic<Bool>(false)
    }
}
