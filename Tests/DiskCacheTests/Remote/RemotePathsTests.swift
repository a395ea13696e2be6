// SPDX-License-Identifier: Apache-2.0

import CacheStore
import TestSupport
import Testing

@testable import DiskCache

@Suite(.takesTurns) struct RemotePathsTests {
    private let digest = Digest(ofKey: "key")

    @Test("paths are those of Bazel unless others are named")
    func defaults() throws {
        let paths = try #require(RemotePaths())
        #expect(paths.content(digest) == "/cas/\(digest)")
        #expect(paths.entry(digest) == "/ac/\(digest)")
    }

    @Test("fields are filled in, the first digits alone too")
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

    @Test("namespaces that the path does not tell apart differ in the digest; contents are shared")
    func namespaces() throws {
        let names = ["", "a", "b"]
        let paths = try names.map { try #require(RemotePaths(namespace: $0)) }
        #expect(Set(paths.map { $0.entry(digest) }).count == 3)
        #expect(Set(paths.map { $0.content(digest) }).count == 1)
    }

    @Test(
        "what is no template is refused",
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

    @Test("what is no namespace is refused", arguments: ["..", ".a", "a/b", "a b", "ü", "a\r\n"])
    func refusedNamespaces(_ name: String) {
        #expect(RemotePaths(namespace: name) == nil)
        #expect(RemotePaths(namespace: String(repeating: "a", count: 65)) == nil)
    }

    @Test("a path with a namespace needs one")
    func missingNamespace() {
        #expect(RemotePaths(entry: "/{namespace}/{key}") == nil)
    }
}
