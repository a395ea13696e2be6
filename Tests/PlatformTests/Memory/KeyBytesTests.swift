// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

@Suite(.takesTurns) struct KeyBytesTests {
    private let seed = HashSeed()

    @Test func `heads are equal if the first 32 bytes are equal`() {
        let text = String((0..<100).map { Character(UnicodeScalar(UInt8(33 + $0 % 90))) })
        for count in 0...70 {
            let key = KeyBytes(String(text.prefix(count)), seed)
            #expect(Int(key.length) == count)
            for other in 0...70 {
                let head = KeyBytes(String(text.prefix(other)), seed).head
                #expect((key.head == head) == (min(count, 32) == min(other, 32)), "\(count) and \(other)")
            }
        }
    }

    @Test(arguments: [0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32])
    func `each byte of a head counts`(count: Int) {
        let bytes = [UInt8](repeating: 97, count: count)
        let key = KeyBytes(String(decoding: bytes, as: UTF8.self), seed)
        for position in 0..<count {
            var changed = bytes
            changed[position] = 98
            #expect(KeyBytes(String(decoding: changed, as: UTF8.self), seed).head != key.head)
        }
    }

    @Test(arguments: [5, 19, 32, 33, 47, 48, 49, 100])
    func `each byte changes the hash, and about half of its bits`(count: Int) {
        let bytes = [UInt8](repeating: 97, count: count)
        let hash = KeyBytes(String(decoding: bytes, as: UTF8.self), seed).hash
        var changed = 0
        for position in 0..<count {
            var other = bytes
            other[position] ^= 1
            let difference = KeyBytes(String(decoding: other, as: UTF8.self), seed).hash ^ hash
            #expect(difference != 0)
            changed += difference.nonzeroBitCount
        }
        let mean = Double(changed) / Double(count)
        #expect(mean > 20 && mean < 44, "\(mean) of 64")
    }

    @Test func `zeros at the end change the hash`() {
        let hashes = (0...64).map { KeyBytes(String(repeating: "\0", count: $0), seed).hash }
        #expect(Set(hashes).count == hashes.count)
    }

    @Test func `hashes of numbered keys spread evenly over shards and tables`() {
        var shards = [Int](repeating: 0, count: 64)
        var homes = [Int](repeating: 0, count: 1024)
        for number in 0..<65_536 {
            let hash = KeyBytes("user:\(number)/thumb", seed).hash
            shards[Int(hash >> 58)] += 1
            homes[Int(hash & 1023)] += 1
        }
        // Expected are 1024 in each of 64 shards and 64 in each of 1024 homes, within seven standard deviations.
        #expect(shards.allSatisfy { abs($0 - 1024) < 7 * 32 })
        #expect(homes.allSatisfy { abs($0 - 64) < 7 * 8 })
    }

    @Test func `another seed gives other hashes`() {
        #expect(KeyBytes("key", seed).hash != KeyBytes("key", HashSeed()).hash)
    }

    @Test func `a string assembled from pieces hashes like its bytes`() {
        let pieces = ["user:", "00000001", "/thumb"]
        #expect(KeyBytes(pieces.joined(), seed).hash == KeyBytes("user:00000001/thumb", seed).hash)
    }
}
