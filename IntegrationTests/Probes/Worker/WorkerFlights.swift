// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Synchronization

/// Gets values, and computes those that are missing.
enum Flights {
    /// Returns the value of `key`, and whether this call computed it.
    ///
    /// If the value is missing, it is computed as `value`; the computation takes the given number of microseconds.
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

    /// The calls that compute missing values.
    enum Form: CaseIterable {
        case value, hit, batch
    }

    private final class Flag: Sendable {
        let isSet = Atomic<Bool>(false)
    }
}
