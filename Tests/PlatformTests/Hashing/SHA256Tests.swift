// SPDX-License-Identifier: Apache-2.0

import Platform
import TestSupport
import Testing

/// Examples of FIPS 180-4 (as published by NIST with the standard), and portable code compared with CPU instructions.
@Suite(.takesTurns) struct SHA256Tests {
    struct Example: Sendable, CustomTestStringConvertible {
        let name: String
        let message: [UInt8]
        let digest: String
        var testDescription: String { name }

        static let all = [
            Example(
                name: "empty",
                message: [],
                digest: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
            ),
            Example(
                name: "24 bits",
                message: Array("abc".utf8),
                digest: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            ),
            Example(
                name: "448 bits",
                message: Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8),
                digest: "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            Example(
                name: "896 bits",
                message: Array(
                    """
                    abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn\
                    hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu
                    """.utf8
                ),
                digest: "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"
            ),
            Example(
                name: "one million a",
                message: Array(repeating: UInt8(ascii: "a"), count: 1_000_000),
                digest: "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
            ),
        ]
    }

    @Test(arguments: Example.all, [false, true])
    func `the standard's examples have the standard's digests`(example: Example, isPortable: Bool) {
        var hash = SHA256(isPortable: isPortable)
        hash.update(example.message.span)
        #expect(hexadecimal(hash.finalize()) == example.digest)
    }

    @Test(arguments: Example.all)
    func `one call gives the same digest as an incremental hash`(example: Example) {
        #expect(hexadecimal(SHA256.hash(example.message.span)) == example.digest)
    }

    @Test func `a message hashed byte by byte has the same digest`() throws {
        let message = SeededGenerator.bytes(200, seed: 1)
        for size in 0...message.count {
            var hash = SHA256()
            for byte in message.prefix(size) { hash.update([byte].span) }
            let whole = SHA256.hash(message.span.extracting(first: size))
            try #require(hexadecimal(hash.finalize()) == hexadecimal(whole), "\(size) bytes")
        }
    }

    @Test func `a copy is independent of the original`() {
        var hash = SHA256()
        hash.update(Array("ab".utf8).span)
        let copy = hash
        hash.update(Array("c".utf8).span)
        #expect(hexadecimal(hash.finalize()) == Example.all[1].digest)
        #expect(hexadecimal(copy.finalize()) == hexadecimal(SHA256.hash(Array("ab".utf8).span)))
    }

    /// A failure reports its seed; put it before the random one to reproduce the failure.
    @Test(
        .enabled(if: SHA256.isAccelerated, "this CPU has no SHA-256 instructions"),
        arguments: [0, UInt64.random(in: .min ... .max)]
    )
    func `the instructions agree with portable code at any size, alignment and cut`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let bytes = SeededGenerator.bytes(70_001, seed: seed)
        for _ in 0..<100 {
            // A suffix starts at any alignment, and a read past its end is also past the array's end.
            let size = Int.random(in: 0...bytes.count, using: &generator)
            var rest = bytes.span.extracting(last: size)
            var portable = SHA256(isPortable: true)
            portable.update(rest)

            var accelerated = SHA256()
            while !rest.isEmpty {
                let cut = Int.random(in: 0...min(rest.count, 1 + size / 3), using: &generator)
                accelerated.update(rest.extracting(first: cut))
                rest = rest.extracting(droppingFirst: cut)
            }
            try #require(
                hexadecimal(accelerated.finalize()) == hexadecimal(portable.finalize()),
                "seed \(seed), \(size) bytes"
            )
        }
    }

    private func hexadecimal(_ digest: [32 of UInt8]) -> String {
        digest.indices.map { index in
            let digits = String(digest[index], radix: 16)
            return digits.count == 1 ? "0" + digits : digits
        }.joined()
    }
}
