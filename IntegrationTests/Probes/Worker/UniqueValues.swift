// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Values each of which is written only once, and in which torn, shifted or mixed bytes can be detected.
///
/// ```
/// number  key  number + 1 step  number + 2 steps …       (words of 8 bytes)
/// ```
package enum UniqueValues {
    /// The keys; elsewhere, a key is identified by its index.
    ///
    /// The last eight keys are four pairs whose digests begin with the same 16 bits, so that each pair shares the state
    /// that the cache keeps for a group of keys.
    package static let keys: [String] =
        (0..<32).map { "key:\($0)" } + [
            "pair:19", "pair:140", "pair:311", "pair:364", "pair:98", "pair:376", "pair:106", "pair:543",
        ]

    /// The key of the number that workers with the role `counter` increment.
    package static let counter = "count"

    private static let step: UInt64 = 0x9e37_79b9_7f4a_7c15

    /// Returns a number for a value that no other thread of any worker uses.
    package static func number(worker: Int, thread: Int, count: Int) -> UInt64 {
        UInt64(worker) << 40 | UInt64(thread) << 32 | UInt64(count)
    }

    /// Returns the worker that writes the value with this number.
    package static func worker(of number: UInt64) -> UInt32 {
        UInt32(truncatingIfNeeded: number >> 40)
    }

    private static func length(_ number: UInt64) -> Int {
        32 + Int((number &* step) >> 58)
    }

    /// Returns the value with this number, which is a few hundred bytes long.
    package static func value(_ number: UInt64, key: Int) -> Data {
        var words = [number, UInt64(key)]
        for place in 2..<length(number) { words.append(number &+ UInt64(place) &* step) }
        return words.withUnsafeBytes { Data($0) }
    }

    /// Returns the number of a value of this key, or nil if the bytes are not such a value.
    package static func number(of data: Data, key: Int) -> UInt64? {
        guard data.count >= 16, data.count % 8 == 0 else { return nil }
        return data.withUnsafeBytes { bytes in
            let number = bytes.loadUnaligned(as: UInt64.self)
            guard bytes.count == length(number) * 8,
                bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self) == UInt64(key)
            else { return nil }
            for place in 2..<length(number) {
                let word = bytes.loadUnaligned(fromByteOffset: place * 8, as: UInt64.self)
                if word != number &+ UInt64(place) &* step { return nil }
            }
            return number
        }
    }
}
