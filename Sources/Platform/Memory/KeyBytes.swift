// SPDX-License-Identifier: Apache-2.0

/// What makes the hashes of one table its own: 320 bits of the system's randomness (getrandom), told to nobody.
///
/// Who chooses keys without having seen hashes can't choose ones that collide: which do depends on the seed, and
/// nothing that a cache gives out, neither a value nor an order, depends on a hash. This is no keyed hash function
/// with a proof, as SipHash is: who times single lookups for long may learn something. Nothing is wrong then, only
/// slow: keys that collide are compared one after the other, as many as the tier holds at most.
@usableFromInline
package struct HashSeed: Sendable {
    @usableFromInline let first = UInt64.random(in: .min ... .max)
    @usableFromInline let second = UInt64.random(in: .min ... .max)
    @usableFromInline let third = UInt64.random(in: .min ... .max)
    @usableFromInline let fourth = UInt64.random(in: .min ... .max)
    @usableFromInline let last = UInt64.random(in: .min ... .max)

    package init() {}
}

/// A key's UTF-8 bytes as a hash table looks for them: their hash, and the first of them as numbers.
///
/// Neither Unicode normalization nor an allocation. A key of up to ``Head/capacity`` bytes is told from every
/// other by its head and its length alone.
@usableFromInline
package struct KeyBytes: Sendable {
    /// The first bytes as numbers.
    ///
    /// Of two keys of the same length that have no more than ``capacity`` bytes, equal where the keys are.
    @usableFromInline
    package struct Head: Sendable, Equatable {
        /// Bytes that it holds: what most keys that people write down do not exceed, in half a cache line.
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
            // One branch: they differ seldom where the hashes agree.
            (left.first ^ right.first) | (left.second ^ right.second) | (left.third ^ right.third)
                | (left.fourth ^ right.fourth) == 0
        }
    }

    @usableFromInline package var hash: UInt64
    @usableFromInline package let head: Head
    /// How many there are, as far as the number goes.
    @usableFromInline package private(set) var length: UInt32

    /// Those of an empty key.
    @inlinable
    package init() {
        (hash, length, head) = (0, 0, Head())
    }

    /// The same as the name of something else: equal to none that was made from a string alone.
    ///
    /// No string that is not longer than ``Head/capacity`` has this length, and those that are longer are compared byte
    /// by byte.
    package var apart: KeyBytes {
        var other = self
        other.length |= 1 << 31
        return other
    }

    /// No call, but for a string that Swift keeps in parts, which none is that was made on Linux.
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
            // Some of the last sixteen may have been counted already, which does no harm.
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
    /// Of words that overlap where the bytes are no multiple of them, so that nothing has to be cut off.
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

/// The product of both, its halves laid upon each other: each bit of the result depends on all of them.
///
/// As wyhash does it, which Go's maps use where a processor has no AES instructions; with factors that nobody
/// outside knows.
@inlinable
@inline(__always)
func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
}

extension UnsafeRawBufferPointer {
    /// The eight bytes from `offset` on as a number, the first one the lowest.
    @inlinable
    @inline(__always)
    func word(at offset: Int) -> UInt64 {
        UInt64(littleEndian: unsafe loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// The four bytes from `offset` on as a number.
    @inlinable
    @inline(__always)
    func halfWord(at offset: Int) -> UInt64 {
        UInt64(UInt32(littleEndian: unsafe loadUnaligned(fromByteOffset: offset, as: UInt32.self)))
    }
}
