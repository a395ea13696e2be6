// SPDX-License-Identifier: Apache-2.0

import CacheStore
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct RemotePathsTests {
    private let digest = Digest(ofKey: "key")

    @Test("paths are Bazel's unless a template is given")
    func defaults() throws {
        let paths = try #require(RemotePaths())
        #expect(paths.content(digest) == "/cas/\(digest)")
        #expect(paths.entry(digest) == "/ac/\(digest)")
    }

    @Test("placeholders are filled in, also the first digits alone")
    func fields() throws {
        let paths = try #require(
            RemotePaths(
                content: "/{digest:2}/{digest}",
                entry: "/v8/{namespace}/{key}?team=a%20b",
                namespace: "ci"
            )
        )
        #expect(paths.content(digest) == "/\(digest.description.prefix(2))/\(digest)")
        #expect(paths.entry(digest) == "/v8/ci/\(digest)?team=a%20b")
    }

    @Test("namespaces outside of the path are part of the digest, and contents are shared")
    func namespaces() throws {
        let names = ["", "a", "b"]
        let paths = try names.map { try #require(RemotePaths(namespace: $0)) }
        #expect(Set(paths.map { $0.entry(digest) }).count == 3)
        #expect(Set(paths.map { $0.content(digest) }).count == 1)
    }

    @Test(
        "invalid templates are refused",
        arguments: [
            "", "cas/{digest}", "/cas", "/{digest", "/digest}", "/{other}", "/{digest:0}", "/{digest:65}",
            "/{digest:2}",
            "/{digest:a}", "/../{digest}", "/./{digest}", "/a b/{digest}", "/\r\n{digest}", "/ü/{digest}",
            "/{{digest}}",
            "/#{digest}", "/{digest:2:3}",
        ]
    )
    func refused(_ text: String) {
        #expect(PathTemplate(text) == nil)
    }

    @Test("invalid namespaces are refused", arguments: ["..", ".a", "a/b", "a b", "ü", "a\r\n"])
    func refusedNamespaces(_ name: String) {
        #expect(RemotePaths(namespace: name) == nil)
        #expect(RemotePaths(namespace: String(repeating: "a", count: 65)) == nil)
    }

    @Test("a path with a namespace needs one")
    func missingNamespace() {
        #expect(RemotePaths(entry: "/{namespace}/{key}") == nil)
    }
}
