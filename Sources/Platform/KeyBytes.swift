// SPDX-License-Identifier: Apache-2.0

/// What makes the hashes of one table its own: 320 bits of the system's randomness (getrandom), told to nobody.
///
/// Who chooses keys without having seen hashes can't choose ones that collide: which do depends on the seed, and
/// nothing that a cache gives out, neither a value nor an order, depends on a hash. This is no keyed hash function
/// with a proof, as SipHash is: who times single lookups for long may learn something. Nothing is wrong then, only
/// slow: keys that collide are compared one after the other, as many as the tier holds at most.
package struct HashSeed: Sendable {
    fileprivate let first = UInt64.random(in: .min ... .max)
    fileprivate let second = UInt64.random(in: .min ... .max)
    fileprivate let third = UInt64.random(in: .min ... .max)
    fileprivate let fourth = UInt64.random(in: .min ... .max)
    fileprivate let last = UInt64.random(in: .min ... .max)

    package init() {}
}

/// A key's UTF-8 bytes as a hash table looks for them: their hash, and the first of them as numbers.
///
/// Neither Unicode normalization nor an allocation. A key of up to ``Head/capacity`` bytes is told from every
/// other by its head and its length alone.
@usableFromInline
package struct KeyBytes: Sendable {
    /// The first bytes, followed by zeros.
    @usableFromInline
    package struct Head: Sendable, Equatable {
        /// Bytes that it holds: what most keys that people write down do not exceed, in half a cache line.
        package static var capacity: Int { 32 }

        @usableFromInline var first: UInt64
        @usableFromInline var second: UInt64
        @usableFromInline var third: UInt64
        @usableFromInline var fourth: UInt64

        @inlinable
        package static func == (left: Head, right: Head) -> Bool {
            // One branch: they differ seldom where the hashes agree.
            (left.first ^ right.first) | (left.second ^ right.second) | (left.third ^ right.third)
                | (left.fourth ^ right.fourth) == 0
        }
    }

    package var hash: UInt64
    package let length: Int
    package let head: Head

    /// - Complexity: O(*n*) in the bytes, 16 of them at a time.
    package init(_ key: borrowing String, _ seed: HashSeed) {
        let bytes = key.utf8Span.span
        length = bytes.count
        (hash, head) = unsafe bytes.withUnsafeBytes { bytes in
            let head = Head(
                first: unsafe bytes.word(at: 0),
                second: unsafe bytes.word(at: 8),
                third: unsafe bytes.word(at: 16),
                fourth: unsafe bytes.word(at: 24)
            )
            var hash =
                fold(head.first ^ seed.first, head.second ^ seed.second)
                ^ fold(head.third ^ seed.third, head.fourth ^ seed.fourth)
            var offset = Head.capacity
            while offset < bytes.count {
                hash = unsafe fold(
                    bytes.word(at: offset) ^ seed.first,
                    bytes.word(at: offset + 8) ^ seed.second ^ hash
                )
                offset += 16
            }
            return (fold(hash ^ seed.last, UInt64(bytes.count) ^ seed.first), head)
        }
    }
}

/// The product of both, its halves laid upon each other: each bit of the result depends on all of them.
///
/// As wyhash does it, which Go's maps use where a processor has no AES instructions; with factors that nobody
/// outside knows.
private func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
}

extension UnsafeRawBufferPointer {
    /// Eight bytes as a number, the first one the lowest; those behind the end are 0.
    fileprivate func word(at offset: Int) -> UInt64 {
        let rest = count - offset
        if rest >= 8 { return unsafe number(at: offset) }
        if rest <= 0 { return 0 }
        // The last eight, without those that lie before the offset.
        if count >= 8 { return unsafe number(at: count - 8) >> UInt64(64 - rest * 8) }
        var word: UInt64 = 0
        for index in 0..<count { word |= unsafe UInt64(self[index]) << UInt64(index * 8) }
        return word
    }

    private func number(at offset: Int) -> UInt64 {
        UInt64(littleEndian: unsafe loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
}
