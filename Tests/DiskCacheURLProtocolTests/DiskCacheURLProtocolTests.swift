// SPDX-License-Identifier: Apache-2.0

import DiskCache
import DiskCacheHTTP
import DiskCacheURLProtocol
import Foundation
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `URLSession` over the shared cache.
@Suite(.takesTurns) struct DiskCacheURLProtocolTests {
    @Test func `a session asks once, and gets the same from the cache`() async throws {
        let directory = try TemporaryDirectory()
        let server = try WebServer { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=60", "X: y"], Data("hello".utf8))
        }
        defer { server.stop() }
        let cache = try await SharedCache.open(at: directory.path + "/cache")
        let configuration = URLSessionConfiguration.ephemeral
        DiskCacheURLProtocol.use(HTTPCache(cache), in: configuration)
        let session = URLSession(configuration: configuration)
        let url = try #require(URL(string: server.url("/a")))
        for _ in 0..<2 {
            let (data, response) = try await session.data(from: url)
            #expect(data == Data("hello".utf8))
            let head = try #require(response as? HTTPURLResponse)
            #expect(head.statusCode == 200)
            #expect(head.value(forHTTPHeaderField: "X") == "y")
        }
        #expect(server.requests.count == 1)
        session.invalidateAndCancel()
    }
}
