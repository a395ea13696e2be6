// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

/// The vectors of RFC 3720 appendix B.4, the check value of CRC catalogues, and portable code compared with CPU
/// instructions.
@Suite(.takesTurns) struct CRC32CTests {
    struct Vector: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        let value: UInt32
        var testDescription: String { name }

        /// The RFC prints the values byte by byte, lowest first: `aa 36 91 8a` is 0x8a9136aa.
        static let all = [
            Vector(name: "no bytes", bytes: [], value: 0),
            Vector(name: "123456789", bytes: Array("123456789".utf8), value: 0xe306_9283),
            Vector(name: "32 zeros", bytes: Array(repeating: 0, count: 32), value: 0x8a91_36aa),
            Vector(name: "32 ones", bytes: Array(repeating: 0xff, count: 32), value: 0x62a8_ab43),
            Vector(name: "incrementing", bytes: Array(0..<32), value: 0x46dd_794e),
            Vector(name: "decrementing", bytes: Array((0..<32).reversed()), value: 0x113f_db5c),
            Vector(
                name: "an iSCSI SCSI Read (10) command",
                bytes: [
                    0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                    0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
                    0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18,
                    0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                    0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                ],
                value: 0xd996_3a56
            ),
        ]
    }

    @Test(arguments: Vector.all, [false, true])
    func `the RFC's vectors have the RFC's values`(vector: Vector, isPortable: Bool) {
        var checksum = CRC32C(isPortable: isPortable)
        checksum.update(vector.bytes.span)
        #expect(checksum.value == vector.value)
    }

    @Test(arguments: Vector.all)
    func `one call gives the same value as an incremental checksum`(vector: Vector) {
        #expect(CRC32C.checksum(vector.bytes.span) == vector.value)
    }

    /// The input is long enough for every path: long strides, short strides, words and bytes.
    @Test(arguments: [false, true])
    func `long input agrees with the definition, one bit at a time`(isPortable: Bool) {
        let bytes = SeededGenerator.bytes(2 * 3072 + 2 * 768 + 3 * 8 + 5, seed: 1)
        var remainder = ~UInt32(0)
        for byte in bytes {
            remainder ^= UInt32(byte)
            for _ in 0..<8 {
                remainder = remainder >> 1 ^ (remainder & 1 == 1 ? 0x82f6_3b78 : 0)
            }
        }
        var checksum = CRC32C(isPortable: isPortable)
        checksum.update(bytes.span)
        #expect(checksum.value == ~remainder)
    }

    /// A failure reports its seed; put it before the random one to reproduce the failure.
    @Test(
        .enabled(if: CRC32C.isAccelerated, "this CPU has no CRC-32C instructions"),
        arguments: [0, UInt64.random(in: .min ... .max)]
    )
    func `the instructions agree with portable code at any size, alignment and cut`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let bytes = SeededGenerator.bytes(70_001, seed: seed)
        for _ in 0..<200 {
            // A suffix starts at any alignment, and a read past its end is also past the array's end.
            let size = Int.random(in: 0...bytes.count, using: &generator)
            var rest = bytes.span.extracting(last: size)
            var portable = CRC32C(isPortable: true)
            portable.update(rest)

            var accelerated = CRC32C()
            while !rest.isEmpty {
                let cut = Int.random(in: 0...min(rest.count, 1 + size / 3), using: &generator)
                accelerated.update(rest.extracting(first: cut))
                rest = rest.extracting(droppingFirst: cut)
            }
            try #require(accelerated.value == portable.value, "seed \(seed), \(size) bytes")
        }
    }
}
