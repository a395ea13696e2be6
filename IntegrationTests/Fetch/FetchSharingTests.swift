// SPDX-License-Identifier: Apache-2.0

import DiskCacheHTTP
import DiskCacheRemote
import Foundation
import TestSupport
import Testing

/// Tests of downloads into a cache that shares its values with other machines.
@Suite(.takesTurns) struct FetchSharingTests {
    @Test func `responses are neither sent to other machines nor requested from them`() throws {
        let directory = try TemporaryDirectory()
        let store = try WebServer { WebServer.Answer($0.method == "PUT" ? 201 : 404) }
        let origin = try WebServer { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=60", "Vary: Cookie"], Data("body".utf8))
        }
        defer {
            store.stop()
            origin.stop()
        }
        var remote = CacheConfiguration.Remote(servers: [store.url("/")])
        remote.limit = .seconds(30)
        let cache = try SharedCache(at: directory.path + "/cache", remote: remote)
        let http = HTTPCache(cache)
        var request = FetchRequest(origin.url("/a"))
        request.fields = [(name: "Cookie", value: "a=b")]
        #expect(try http.fetchAndWait(request).body == Data("body".utf8))
        #expect(try http.fetchAndWait(request).cacheStatus.isHit)
        #expect(cache.directory.remote?.waiting == 0)
        #expect(store.requests.isEmpty)
        try cache.put(Data("value".utf8), forKey: "key")
        waitUntil("it is sent") { cache.directory.remote?.waiting == 0 }
        // Before its first change a process requests from each server once a key that can't exist. All other requests are
        // about the key.
        let requests = store.requests
        #expect(requests.first?.method == "GET" && requests.contains { $0.method == "PUT" })
        #expect(Set(requests.dropFirst().map(\.path)).count == 1)
        #expect(origin.requests.count == 1)
    }
}
