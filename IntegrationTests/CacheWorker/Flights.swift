// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// Values that are computed where there are none.
enum Flights {
    /// The value of `key`, which `compute` makes and the cache keeps where there is none.
    static func value(
        of key: String,
        in cache: SharedCache,
        orCompute compute: () throws -> Data
    ) throws -> Data {
        if let hit = try cache.get(key) { return hit.data }
        let value = try compute()
        try cache.put(value, forKey: key)
        return value
    }
}
