// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Platform

/// Values that can be checked without knowing which of them was stored.
///
/// Any process can generate each value, and can tell whether bytes from the cache are one of them.
///
/// ```
/// key  version  body: a window of a fixed buffer of noise
///  8      8     length - 16 bytes
/// ```
///
/// Key and version determine the position of the window, so one memcmp checks the whole body.
struct SelfProvingValues: Sendable {
    static let headerSize = 16
    /// The minimum length of a value; shorter values would consist almost only of the header.
    static let smallest = 64
    /// The number of possible window positions; a buffer of a megabyte fits into the processor's cache.
    private static let places = 1 << 20

    private let size: Int
    private let noise: Data

    init(size: Int) {
        self.size = size
        noise = Platform.noise(count: Self.places + size, seed: 0x6469_736b)
    }

    /// Returns the key with this index.
    func key(_ index: Int) -> String { "bench/\(size)/\(index)" }

    /// Returns the version of a recurring value.
    ///
    /// All processes store these few values repeatedly, so that bytes are stored again while a collection may delete
    /// them.
    static func recurring(_ number: UInt64) -> UInt64 { UInt64.max << 32 | number }

    /// Returns the value of a key in a version.
    ///
    /// Version 0 is the initial value, stored before any worker starts. Other versions consist of the worker's number in
    /// the upper 32 bits and a count in the lower ones.
    func value(_ index: Int, version: UInt64 = 0) -> Data {
        let header = [UInt64(index), version]
        let bytes = header.flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
        return Data(bytes) + body(header)
    }

    /// Returns the problem with bytes that a get of the key has returned; nil if they are correct.
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
