// SPDX-License-Identifier: Apache-2.0

import CacheStore
import TestSupport
import Testing

@testable import RemoteStore

@Suite(.takesTurns) struct ActionResultTests {
    private func result(inlined: Bool) -> ActionResult {
        ActionResult(
            digest: Digest(ofKey: "value"),
            length: 5,
            contents: inlined ? Array("value".utf8) : nil,
            record: [1, 2, 0, 255]
        )
    }

    private func fault(_ bytes: [UInt8]) -> WireFault? {
        do throws(WireFault) {
            _ = try ActionResult(decoding: bytes)
            return nil
        } catch {
            return error
        }
    }

    @Test("a message survives the round trip, inlined or not", arguments: [true, false])
    func roundTrip(_ inlined: Bool) throws {
        let sent = result(inlined: inlined)
        #expect(try ActionResult(decoding: sent.encoded()) == sent)
    }

    @Test("an empty value needs no second request")
    func empty() throws {
        let sent = ActionResult(digest: Digest(ofKey: ""), length: 0, contents: nil, record: [])
        #expect(try ActionResult(decoding: sent.encoded()).contents == [])
    }

    @Test("the bytes match the wire format")
    func bytes() {
        let digits = Array(Digest(ofKey: "value").description.utf8)
        let digest: [UInt8] = [0x0a, 64] + digits + [0x10, 5]
        let file: [UInt8] =
            [0x0a, 5] + Array("value".utf8) + [0x12, UInt8(digest.count)] + digest + [0x2a, 5]
            + Array("value".utf8)
        let message: [UInt8] = [0x12, UInt8(file.count)] + file + [0x2a, 4, 1, 2, 0, 255]
        #expect(result(inlined: true).encoded() == message)
    }

    @Test("unknown fields are skipped")
    func unknownFields() throws {
        let sent = result(inlined: true)
        // A varint, 8 bytes, a byte string and 4 bytes, in fields 9, 10, 1000 and 12, and a file with another path.
        let added: [UInt8] = [
            0x12, 3, 0x0a, 1, 0x62, 0x48, 0x96, 0x01, 0x51, 1, 2, 3, 4, 5, 6, 7, 8, 0xc2, 0x3e, 2, 7, 7, 0x65,
            1, 2, 3, 4,
        ]
        let received = try ActionResult(decoding: added + sent.encoded() + added)
        #expect(received == sent)
    }

    @Test("contents that do not match the digest are detected")
    func wrongContents() {
        var sent = result(inlined: true)
        sent.contents = Array("valve".utf8)
        #expect(fault(sent.encoded()) == .wrongDigest)
        sent.contents = Array("values".utf8)
        #expect(fault(sent.encoded()) == .wrongDigest)
    }

    @Test("a truncated message is a fault, or lacks whole fields")
    func truncated() {
        let bytes = result(inlined: true).encoded()
        for count in 1..<bytes.count {
            guard let received = try? ActionResult(decoding: Array(bytes.prefix(count))) else { continue }
            var expected = result(inlined: true)
            expected.record = []
            #expect(received == expected)
        }
    }

    @Test(
        "hostile bytes are faults",
        arguments: [
            [0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],  // a length of 2^64 - 1
            [0x12, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02],  // more than 64 bits
            [0x00], [0x13], [0x14], [0x16], [0x17], [0x10, 1], [0x12, 0], [0x80],
            [0x12, 3, 0x0a, 1, 0xff],
        ] as [[UInt8]]
    )
    func hostile(_ bytes: [UInt8]) {
        #expect(fault(bytes) == .malformed)
    }

    @Test("messages with too many bytes, or without a value, are faults")
    func tooLong() {
        #expect(fault([]) == .malformed && fault([0x2a, 1, 1]) == .malformed)
        #expect(fault([UInt8](repeating: 0, count: ActionResult.maximumSize + 1)) == .tooLong)
    }

    @Test("after any change the inlined content is the value or missing")
    func noise() {
        let sent = result(inlined: true).encoded()
        var generator = SeededGenerator(seed: 11)
        for _ in 0..<5_000 {
            var bytes = sent
            for _ in 0..<Int.random(in: 1...4, using: &generator) {
                bytes[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(
                    in: 0...255,
                    using: &generator
                )
            }
            guard let found = try? ActionResult(decoding: bytes), let contents = found.contents else {
                continue
            }
            #expect(Digest(of: contents.span) == found.digest && contents.count == found.length)
        }
    }
}
