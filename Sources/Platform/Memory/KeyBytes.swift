// SPDX-License-Identifier: Apache-2.0

/// The seed of one table's hashes: 320 bits of the system's randomness (getrandom), which are never disclosed.
///
/// An attacker who chooses keys without having seen hashes can't choose colliding keys: collisions depend on the seed,
/// and no value or order that a cache returns depends on a hash. Unlike SipHash, this is not a keyed hash function with a
/// security proof: an attacker who times single lookups for a long time may infer something about the seed. That affects
/// performance, not correctness: a lookup compares colliding keys one after the other, at most as many as the tier holds.
@usableFromInline
package struct HashSeed: Sendable {
    @usableFromInline let first = UInt64.random(in: .min ... .max)
    @usableFromInline let second = UInt64.random(in: .min ... .max)
    @usableFromInline let third = UInt64.random(in: .min ... .max)
    @usableFromInline let fourth = UInt64.random(in: .min ... .max)
    @usableFromInline let last = UInt64.random(in: .min ... .max)

    package init() {}
}

/// A key's UTF-8 bytes prepared for a hash table lookup: their hash, their number, and the first of them as integers.
///
/// There is no Unicode normalization and no allocation. The head and the length alone distinguish a key of up to
/// ``Head/capacity`` bytes from all others.
@usableFromInline
package struct KeyBytes: Sendable {
    /// The first bytes of a key as integers.
    ///
    /// Two keys of the same length, at most ``capacity`` bytes, have equal heads exactly if the keys are equal.
    @usableFromInline
    package struct Head: Sendable, Equatable {
        /// The number of bytes that a head holds: half a cache line, and enough for most keys that people write.
        @inlinable package static var capacity: Int { 32 }

        @usableFromInline var first: UInt64
        @usableFromInline var second: UInt64
        @usableFromInline var third: UInt64
        @usableFromInline var fourth: UInt64

        @inlinable
        init() {
            (first, second, third, fourth) = (0, 0, 0, 0)
        }

        @inlinable
        package static func == (left: Head, right: Head) -> Bool {
            // One branch, because heads seldom differ if the hashes are equal.
            (left.first ^ right.first) | (left.second ^ right.second) | (left.third ^ right.third)
                | (left.fourth ^ right.fourth) == 0
        }
    }

    @usableFromInline package var hash: UInt64
    @usableFromInline package let head: Head
    /// The number of bytes, clamped to the range of the type.
    @usableFromInline package private(set) var length: UInt32

    /// Creates the bytes of an empty key.
    @inlinable
    package init() {
        (hash, length, head) = (0, 0, Head())
    }

    /// The same bytes in a separate name space: they equal no value that was created from a string alone.
    ///
    /// No string of at most ``Head/capacity`` bytes has this length, and longer ones are compared byte by byte.
    package var apart: KeyBytes {
        var other = self
        other.length |= 1 << 31
        return other
    }

    /// Creates the bytes of a key.
    ///
    /// It makes no call, except for a string without contiguous storage, which does not occur on Linux.
    ///
    /// - Complexity: O(*n*) in the bytes, 16 of them at a time.
    @inlinable
    @inline(__always)
    package init(_ key: String, _ seed: HashSeed) {
        let bytes = unsafe key.utf8.withContiguousStorageIfAvailable { unsafe KeyBytes($0, seed) }
        self = bytes ?? KeyBytes(copying: key, seed)
    }

    @usableFromInline
    init(copying key: String, _ seed: HashSeed) {
        self = unsafe Array(key.utf8).withUnsafeBufferPointer { unsafe KeyBytes($0, seed) }
    }

    @unsafe
    @inlinable
    @inline(__always)
    init(_ bytes: UnsafeBufferPointer<UInt8>, _ seed: HashSeed) {
        let bytes = UnsafeRawBufferPointer(bytes)
        let count = bytes.count
        let head = unsafe Head(bytes)
        var hash =
            fold(head.first ^ seed.first, head.second ^ seed.second)
            ^ fold(head.third ^ seed.third, head.fourth ^ seed.fourth)
        if count > Head.capacity {
            var offset = Head.capacity
            while offset + 16 < count {
                hash = unsafe fold(
                    bytes.word(at: offset) ^ seed.first,
                    bytes.word(at: offset + 8) ^ seed.second ^ hash
                )
                offset += 16
            }
            // The last sixteen bytes may overlap bytes that are already hashed, which does no harm.
            hash = unsafe fold(
                bytes.word(at: count - 16) ^ seed.first,
                bytes.word(at: count - 8) ^ seed.second ^ hash
            )
        }
        self.hash = fold(hash ^ seed.last, UInt64(truncatingIfNeeded: count) ^ seed.first)
        length = UInt32(clamping: count)
        self.head = head
    }
}

extension KeyBytes.Head {
    /// Creates the head from words, which overlap if the length is not a multiple of their size, so that no masking is
    /// needed.
    @unsafe
    @inlinable
    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer) {
        let count = bytes.count
        self.init()
        if count >= 16 {
            let rest = min(count, Self.capacity) - 16
            first = unsafe bytes.word(at: 0)
            second = unsafe bytes.word(at: 8)
            third = unsafe bytes.word(at: rest)
            fourth = unsafe bytes.word(at: rest + 8)
        } else if count >= 8 {
            first = unsafe bytes.word(at: 0)
            second = unsafe bytes.word(at: count - 8)
        } else if count >= 4 {
            first = unsafe bytes.halfWord(at: 0) | bytes.halfWord(at: count - 4) << 32
        } else if count > 0 {
            first = unsafe UInt64(bytes[0]) | UInt64(bytes[count / 2]) << 8 | UInt64(bytes[count - 1]) << 16
        }
    }
}

/// Returns the XOR of the two halves of the product: each bit of the result depends on all bits of both factors.
///
/// This is the mixing function of wyhash, which Go's maps use if the processor has no AES instructions; the factors here are
/// secret.
@inlinable
@inline(__always)
func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
}

extension UnsafeRawBufferPointer {
    /// Returns the eight bytes at `offset` as a number, in little-endian order.
    @inlinable
    @inline(__always)
    func word(at offset: Int) -> UInt64 {
        UInt64(littleEndian: unsafe loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// Returns the four bytes at `offset` as a number, in little-endian order.
    @inlinable
    @inline(__always)
    func halfWord(at offset: Int) -> UInt64 {
        UInt64(UInt32(littleEndian: unsafe loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }
}
