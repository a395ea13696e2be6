// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCache

/// These tests pass their own variables, because all tests share the process's environment.
@Suite(.takesTurns) struct StandardCacheTests {
    private func path(of name: String, _ variables: [String: String]) throws -> String {
        try SharedCache.standardPath(of: name) { variables[$0].map { Array($0.utf8) } }
    }

    @Test(arguments: [
        (["XDG_CACHE_HOME": "/x", "HOME": "/h"], "/x/name"),
        (["XDG_CACHE_HOME": "relative", "HOME": "/h"], "/h/.cache/name"),
        (["XDG_CACHE_HOME": "", "HOME": "/h"], "/h/.cache/name"),
        (["HOME": "/h"], "/h/.cache/name"),
    ])
    func `the path is in the user's cache directory`(variables: [String: String], expected: String) throws {
        #expect(try path(of: "name", variables) == expected)
    }

    @Test(arguments: [[:], ["HOME": ""], ["HOME": "relative"]] as [[String: String]])
    func `standardPath throws without a valid cache or home directory`(variables: [String: String]) {
        #expect(code { _ = try path(of: "name", variables) } == .invalidArgument)
    }

    @Test(arguments: ["", ".", "..", "a/b", "/", "a\0b"])
    func `an invalid directory name is refused`(name: String) {
        #expect(code { _ = try path(of: name, ["HOME": "/h"]) } == .invalidArgument)
        #expect(code { _ = try SharedCache.standard(name: name) } == .invalidArgument)
    }

    @Test func `a standard path need not be valid UTF-8`() throws {
        let path = try SharedCache.standardPath(of: "name") { variable in
            variable == "HOME" ? Array("/h".utf8) : [UInt8(ascii: "/"), 0xff]
        }
        #expect(path.pathBytes == [UInt8(ascii: "/"), 0xff] + Array("/name".utf8))
    }

    @Test func `a standard cache is private and named after its directory by default`() throws {
        let place = try TemporaryDirectory()
        let variables = ["XDG_CACHE_HOME": place.path + "/above"]
        func open(_ configuration: CacheConfiguration) throws -> SharedCache {
            try SharedCache.standard(name: "thumbs", configuration: configuration) {
                variables[$0].map { Array($0.utf8) }
            }
        }
        let cache = try open(CacheConfiguration())
        #expect(cache.path == place.path + "/above/thumbs")
        #expect(cache.configuration.name == "thumbs")
        try cache.put("value", forKey: "key")
        var configuration = CacheConfiguration()
        configuration.name = "own"
        let other = try open(configuration)
        #expect(other.configuration.name == "own")
        #expect(try other.get(forKey: "key") != nil)
        let attributes = try FileManager.default.attributesOfItem(atPath: cache.path)
        #expect(attributes[.posixPermissions] as? Int == 0o700)
    }
}
