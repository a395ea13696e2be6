// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import RemoteStore

/// Forged entries on a server that other machines read.
@Suite(.takesTurns) struct ForgedEntryTests {
    private static let blob = Data("what others need".utf8)

    /// Returns an action result for `key` that names the blob, with these other fields.
    private static func entry(_ key: String, length: Int, contents: [UInt8]?, record: Record) -> Data {
        let action = ActionResult(
            digest: Digest(of: blob),
            length: length,
            contents: contents,
            record: record.encoded(for: Digest(ofKey: key))
        )
        return Data(action.encoded())
    }

    @Test func `a forged entry that names another value is removed, and the value is kept`() throws {
        let own = Record(content: Content(of: Self.blob.span), created: .now)
        let other = Record(content: Content(of: Data("another".utf8).span), created: .now)
        let entries = [
            // Bytes that do not match the digest, another length, another record.
            "inlined": Self.entry("inlined", length: 4, contents: Array("fake".utf8), record: own),
            "length": Self.entry("length", length: 1, contents: nil, record: own),
            "record": Self.entry("record", length: Self.blob.count, contents: nil, record: other),
        ]
        let paths = Dictionary(
            uniqueKeysWithValues: entries.map { ("/ac/\(Digest(ofKey: $0.key))", $0.value) }
        )
        let blobPath = "/cas/\(Digest(of: Self.blob))"
        let removed = Locked<Set<String>>([])
        let server = try WebServer { request in
            switch request.method {
            case "GET" where request.path == blobPath: return WebServer.Answer(200, [], Self.blob)
            case "GET":
                return paths[request.path].map { WebServer.Answer(200, [], $0) } ?? WebServer.Answer(404)
            case "DELETE":
                removed.withLock { _ = $0.insert(request.path) }
                return WebServer.Answer(204)
            default: return WebServer.Answer(201)
            }
        }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        var remote = CacheConfiguration.Remote(servers: [server.url()])
        remote.limit = .seconds(60)
        let cache = try SharedCache(
            at: directory.path + "/cache",
            configuration: configuration,
            remote: remote
        )
        for key in entries.keys { #expect(try cache.get(forKey: key) == nil) }
        waitUntil("the entries are removed") { removed.withLock { $0.count } >= entries.count }
        cache.close()
        #expect(removed.withLock { $0 } == Set(paths.keys))
    }
}
