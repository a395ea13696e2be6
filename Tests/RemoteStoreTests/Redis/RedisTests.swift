// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import RemoteStore

@Suite(.takesTurns) struct RedisTests {
    /// Decodes all replies from pieces of `size` bytes.
    private func replies(
        _ bytes: [UInt8],
        pieces size: Int = .max,
        _ limits: RedisDecoder.Limits = RedisDecoder.Limits()
    ) throws(WireFault) -> [RedisReply] {
        var decoder = RedisDecoder(limits)
        var found: [RedisReply] = []
        var start = 0
        while start < bytes.count {
            let count = min(size, bytes.count - start)
            decoder.append(bytes[start..<start + count])
            start += count
            while let reply = try decoder.next() { found.append(reply) }
        }
        return found
    }

    private func fault(_ text: String, _ limits: RedisDecoder.Limits = RedisDecoder.Limits()) -> WireFault? {
        do throws(WireFault) {
            _ = try replies(Array(text.utf8), pieces: .max, limits)
            return nil
        } catch {
            return error
        }
    }

    private func text(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test("commands are arrays of strings of any bytes")
    func commands() {
        #expect(RedisCommand.get([0, 13, 10]) == text("*2\r\n$3\r\nGET\r\n$3\r\n") + [0, 13, 10, 13, 10])
        #expect(
            RedisCommand.set(text("k"), text("v"), lifetime: 1500)
                == text("*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n$2\r\nPX\r\n$4\r\n1500\r\n")
        )
        #expect(
            RedisCommand.get(text("k"), first: 16)
                == text("*4\r\n$8\r\nGETRANGE\r\n$1\r\nk\r\n$1\r\n0\r\n$2\r\n15\r\n")
        )
        #expect(RedisCommand.set(text("k"), []) == text("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"))
        #expect(RedisCommand.authenticate(password: "p") == text("*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n"))
    }

    @Test("replies are parsed, however the bytes are split", arguments: [1, 2, 3, 7, Int.max])
    func answers(_ size: Int) throws {
        let bytes = text(
            "+OK\r\n-ERR no such\r\n:-42\r\n$5\r\nva\r\nu\r\n$0\r\n\r\n$-1\r\n*-1\r\n*0\r\n*3\r\n:1\r\n$1\r\na\r\n$-1\r\n+OK\r\n"
        )
        let expected: [RedisReply] = [
            .simple(text("OK")), .error(text("ERR no such")), .integer(-42), .bulk(text("va\r\nu")),
            .bulk([]), .null, .null,
            .array([]), .array([.integer(1), .bulk(text("a")), .null]), .simple(text("OK")),
        ]
        let found = try replies(bytes, pieces: size)
        #expect(found == expected)
        #expect(found[1].errorCode == "ERR" && found[0].errorCode == nil)
    }

    @Test(
        "invalid replies are faults",
        arguments: [
            "?\r\n", "\r\n", "\n", "OK\n", "+OK\n", ":\r\n", ":a\r\n", ":99999999999999999999\r\n", "$a\r\n",
            "$-2\r\n",
            "$?\r\n", "$1\r\nabc", "*-2\r\n", "*1\r\n*1\r\n", "%1\r\n", "_\r\n",
            "HTTP/1.1 400 Bad Request\r\n",
        ]
    )
    func malformed(_ text: String) {
        #expect(fault(text) == .malformed)
    }

    @Test("a length beyond the limits is a fault as soon as it is announced")
    func limits() {
        var limits = RedisDecoder.Limits()
        limits.longestBulk = 10
        limits.longestLine = 20
        limits.mostElements = 5
        #expect(fault("$11\r\n", limits) == .longValue)
        #expect(fault("$10\r\n0123456789\r\n", limits) == nil)
        #expect(fault(String(repeating: "a", count: 21), limits) == .tooLong)
        #expect(fault("*6\r\n", limits) == .tooLong)
        #expect(fault("*2\r\n$6\r\n012345\r\n$5\r\n", limits) == .longValue)
        #expect(fault("$6\r\n012345\r\n$5\r\n01234\r\n", limits) == nil)
        #expect(fault("$9223372036854775807\r\n") == .longValue)
        // The limits apply to each reply, not to their sum.
        #expect(fault(String(repeating: "*2\r\n:1\r\n:2\r\n", count: 100), limits) == nil)
    }

    @Test("an incomplete reply waits for more bytes, and a complete one is removed from the buffer")
    func incomplete() throws {
        var decoder = RedisDecoder()
        decoder.append(text("$100000\r\n"))
        #expect(try decoder.next() == nil)
        for _ in 0..<100 {
            decoder.append([UInt8](repeating: 7, count: 1000))
            #expect(try decoder.next() == nil)
        }
        decoder.append(text("\r\n+OK\r\n"))
        #expect(try decoder.next() == .bulk([UInt8](repeating: 7, count: 100_000)))
        #expect(try decoder.next() == .simple(text("OK")))
        #expect(try decoder.next() == nil)
        #expect(decoder.waitingBytes == 0)
    }

    @Test("random bytes give replies or faults")
    func noise() {
        var generator = SeededGenerator(seed: 3)
        let alphabet = text("+-:$*_#,(!=%~>|0123456789\r\n\r\n\r\nab")
        for _ in 0..<3_000 {
            let bytes = (0..<Int.random(in: 1...60, using: &generator)).map { _ in
                alphabet[Int.random(in: alphabet.indices, using: &generator)]
            }
            let whole = try? replies(bytes, pieces: .max)
            let cut = try? replies(bytes, pieces: 1)
            #expect((whole == nil) == (cut == nil))
            #expect(whole == cut)
        }
    }
}
