// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import TestSupport
import Testing

@testable import DiskCacheHTTP

@Suite(.takesTurns) struct FieldCipherTests {
    private let cipher = FieldCipher(key: Array(0..<32))

    @Test(arguments: ["", "a", "Set-Cookie: a=b", String(repeating: "ä", count: 1000)])
    func `a sealed text opens only for its place and key, and differs each time`(_ text: String) {
        let sealed = cipher.sealed(text, for: "place")
        #expect(cipher.opened(sealed, for: "place") == text)
        #expect(sealed != cipher.sealed(text, for: "place"))
        #expect(cipher.opened(sealed, for: "place2") == nil)
        #expect(FieldCipher(key: Array(1..<33)).opened(sealed, for: "place") == nil)
    }

    @Test func `a modified or truncated ciphertext is rejected`() throws {
        let sealed = try #require(Data(base64Encoded: cipher.sealed("secret", for: "place")))
        #expect(sealed.count == 16 + 6 + 16)
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(cipher.opened(changed.base64EncodedString(), for: "place") == nil)
            #expect(cipher.opened(sealed.prefix(index).base64EncodedString(), for: "place") == nil)
        }
        #expect(cipher.opened("no Base64", for: "place") == nil)
    }

    @Test func `a key file is created once, with its directories, for its user only`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/a/b/key"
        let first = try #require(FieldCipher(keyFile: path))
        #expect(FieldCipher(keyFile: path) == first)
        #expect(try permissions(path) == 0o600)
        #expect(try permissions(directory.path + "/a/b") == 0o700)
        #expect(FieldCipher(keyFile: directory.path + "/a/other") != first)
    }

    @Test func `threads that create the key concurrently get the same key`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/a/key"
        let ciphers = Mutex<[FieldCipher?]>([])
        onThreads(8) { _ in
            let cipher = FieldCipher(keyFile: path)
            ciphers.withLock { $0.append(cipher) }
        }
        let first = try #require(FieldCipher(keyFile: path))
        #expect(ciphers.withLock { $0 } == Array(repeating: first, count: 8))
    }

    @Test func `a file that is no key or that others can read is rejected and left unchanged`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/key"
        for (bytes, mode) in [(31, 0o600), (33, 0o600), (0, 0o600), (32, 0o640), (32, 0o604)] {
            let data = Data(repeating: 1, count: bytes)
            try data.write(to: URL(filePath: path))
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
            #expect(FieldCipher(keyFile: path) == nil)
            #expect(try Data(contentsOf: URL(filePath: path)) == data)
        }
        for path in ["", "key", "/", directory.path, directory.path + "/key/key", "/proc/none/key"] {
            #expect(FieldCipher(keyFile: path) == nil)
        }
    }

    @Test(
        arguments: [
            (["XDG_DATA_HOME": "/x", "HOME": "/h"], "/x/diskcache/key"),
            (["HOME": "/h"], "/h/.local/share/diskcache/key"),
            (["XDG_DATA_HOME": "x", "HOME": "/h"], "/h/.local/share/diskcache/key"), (["HOME": "h"], nil),
            ([:], nil),
        ] as [([String: String], String?)]
    )
    func `the key file is in the user's XDG data directory`(environment: [String: String], path: String?) {
        #expect(HTTPCacheOptions.userKeyFile { environment[$0].map { Array($0.utf8) } } == path)
    }

    private func permissions(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? Int)
    }
}
