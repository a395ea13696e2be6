// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct DigestTests {
    @Test func `a key's digest covers its UTF-8 bytes, without normalization`() {
        #expect(
            Digest(ofKey: "abc").description
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        )
        // U+00E9 and "e" with U+0301 are equal strings in Swift.
        #expect("\u{e9}" == "e\u{301}")
        #expect(Digest(ofKey: "\u{e9}") != Digest(ofKey: "e\u{301}"))
    }

    @Test func `a digest is parsed only from 64 lowercase hexadecimal digits`() {
        let digest = Digest(ofKey: "x")
        #expect(Digest(hexadecimal: digest.description) == digest)
        #expect(Digest(hexadecimal: digest.description.uppercased()) == nil)
        #expect(Digest(hexadecimal: String(digest.description.dropLast())) == nil)
        #expect(Digest(hexadecimal: digest.description + "0") == nil)
        #expect(Digest(hexadecimal: String(repeating: "g", count: 64)) == nil)
    }

    @Test func `the path begins with the first two digits`() {
        let digest = Digest(ofKey: "abc")
        #expect(StoreLayout.path(of: digest).description == "ba/\(digest)")
        #expect(StoreLayout.shards.map(\.description).first == "00")
        #expect(StoreLayout.shards.map(\.description).last == "ff")
    }
}
