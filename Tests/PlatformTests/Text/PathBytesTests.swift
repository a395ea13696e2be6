// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct PathBytesTests {
    @Test func `any bytes survive a round trip`() {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<20_000 {
            let count = Int(generator.next() % 9)
            // The disjunction makes bytes that begin or continue a UTF-8 sequence more likely.
            let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next() | generator.next())
            }
            #expect(String(pathBytes: bytes).pathBytes == bytes)
        }
    }

    @Test func `UTF-8 bytes become the same text`() {
        for text in ["", "/a/b", "ä/€/😀"] {
            #expect(String(pathBytes: Array(text.utf8)) == text && !text.hasForeignBytes)
        }
    }

    @Test func `only bytes that are not UTF-8 are replaced`() {
        let text = String(pathBytes: [0x61, 0xff, 0xc3, 0xa4, 0xc3])
        #expect(text.hasForeignBytes && text.contains("ä") && text.hasPrefix("a"))
        #expect(text.unicodeScalars.count == 4)
    }

    @Test func `code points that represent bytes are escaped themselves`() {
        for text in ["\u{10ffff}", "/a/\u{10ff80}b"] {
            let path = String(pathBytes: Array(text.utf8))
            #expect(path.hasForeignBytes && path != text && path.pathBytes == Array(text.utf8))
        }
    }

    @Test func `a path with a NUL names no file`() throws {
        let directory = try TemporaryDirectory()
        makeFile(directory.path + "/a", "precious")
        for path in ["/a\u{0}", "/a\u{0}b"].map({ directory.path + $0 }) {
            #expect(throws: Errno.invalidArgument) { _ = try FileStatus.of(path) }
            #expect(throws: Errno.invalidArgument) {
                try OutputFile.write(path) { (file) throws(Errno) in try file.writeAll([1].span) }
            }
        }
        #expect(try FileStatus.of(directory.path + "/a").size == 8)
    }
}
