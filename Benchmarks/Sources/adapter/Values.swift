// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// The keys of all adapters: `user:00000042/thumb`.
enum Keys {
    static func key(_ index: Int) -> String {
        let digits = String(index)
        return "user:" + String(repeating: "0", count: max(0, 8 - digits.count)) + digits + "/thumb"
    }

    /// The first `count` keys, made before anything is timed.
    static func all(_ count: Int) -> [String] { (0..<count).map { key($0) } }
}

/// A value to put: noise that begins with the key's index and the number of the put.
///
/// ```
/// index  number  noise
///   8      8     size - 16 bytes
/// ```
///
/// The number makes every put write other bytes than those before it: bytes that are there already would
/// cost the cache hardly anything.
struct Values {
    static let stampSize = 16
    private var data: Data
    private var number: UInt64

    init(size: Int) {
        var random = SplitMix(state: 12_345)
        data = Data(count: size)
        for offset in stride(from: 0, to: size - 7, by: 8) {
            Self.store(random.next(), at: offset, in: &data)
        }
        number = now() ^ UInt64.random(in: 0...UInt64.max)
    }

    /// The next value of the key `index`.
    ///
    /// Written into the same bytes again; where the cache has kept them, into a copy.
    @inline(__always)
    mutating func next(_ index: Int) -> Data {
        number &+= 1
        Self.store(UInt64(index), at: 0, in: &data)
        Self.store(number, at: 8, in: &data)
        return data
    }

    /// Whether `data` is a value of the key `index`, as far as its length and its first bytes tell.
    @inline(__always)
    static func isRight(_ data: Data, size: Int, _ index: Int) -> Bool {
        guard data.count == size else { return false }
        return unsafe data.withUnsafeBytes { unsafe $0.loadUnaligned(as: UInt64.self) } == UInt64(index)
    }

    @inline(__always)
    private static func store(_ word: UInt64, at offset: Int, in data: inout Data) {
        unsafe data.withUnsafeMutableBytes {
            unsafe $0.storeBytes(of: word, toByteOffset: offset, as: UInt64.self)
        }
    }
}
