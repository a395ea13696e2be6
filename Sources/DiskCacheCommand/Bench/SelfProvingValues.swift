// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// Values that can be checked without knowing which one was stored: any process can generate each of them, and check whether
/// bytes from the cache are one.
///
/// ```
/// key  version  body: a window of a fixed buffer of noise
///  8      8     length - 16 bytes
/// ```
///
/// The position of the window follows from key and version, so one memcmp of all its bytes checks a body.
struct SelfProvingValues: Sendable {
    static let headerSize = 16
    /// The minimum length; shorter values would have hardly any body.
    static let smallest = 64
    /// The number of possible window positions; a buffer of a megabyte stays in the processor's cache.
    private static let places = 1 << 20

    private let size: Int
    private let noise: Data

    init(size: Int) {
        self.size = size
        noise = Platform.noise(count: Self.places + size, seed: 0x6469_736b)
    }

    /// Returns the key with an index.
    func key(_ index: Int) -> String { "bench/\(size)/\(index)" }

    /// Returns the version of one of a few values that all processes store repeatedly, so that bytes that were just replaced
    /// are stored again during a collection.
    static func recurring(_ number: UInt64) -> UInt64 { UInt64.max << 32 | number }

    /// Returns the value of a key at a version.
    ///
    /// The version is 0 for the initial value before any worker starts, and later the worker's number in the upper 32 bits
    /// and a count in the lower ones.
    func value(_ index: Int, version: UInt64 = 0) -> Data {
        let header = [UInt64(index), version]
        let bytes = header.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
        return Data(bytes) + body(header)
    }

    /// Returns the problem with bytes that a get of the key returned; nil if they are right.
    func problem(in data: Data, of index: Int) -> String? {
        guard data.count == size else { return "\(data.count) bytes instead of \(size)" }
        let header = [0, 8].map { place in
            (0..<8).reduce(UInt64(0)) { $0 | UInt64(data[data.startIndex + place + $1]) << UInt64(8 * $1) }
        }
        guard header[0] == UInt64(index) else { return "the header of key \(header[0])" }
        let (found, expected) = (data.dropFirst(Self.headerSize), body(header))
        if found == expected { return nil }
        let offset = zip(found, expected).prefix { $0 == $1 }.count
        return "a wrong byte at \(Self.headerSize + offset)"
    }

    private func body(_ header: [UInt64]) -> Data {
        let hash = SplitMix64.mix(SplitMix64.mix(header[0]) ^ header[1])
        let start = noise.startIndex + Int(hash % UInt64(Self.places))
        return noise[start..<(start + size - Self.headerSize)]
    }
}
