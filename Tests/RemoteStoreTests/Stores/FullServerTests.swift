// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import RemoteStore

/// A server without room for more values.
@Suite(.takesTurns) struct FullServerTests {
    private struct State {
        var bodies: [String: Data] = [:]
        var isFull = false
        var refusals = 0
    }

    @Test func `a full server still serves its values, and gets the others once it has room`() throws {
        let state = Locked(State())
        let server = try WebServer { request in
            state.withLock { state in
                switch request.method {
                case "PUT" where state.isFull:
                    state.refusals += 1
                    return WebServer.Answer(507)
                case "PUT":
                    state.bodies[request.path] = request.body
                    return WebServer.Answer(201)
                case "DELETE":
                    return WebServer.Answer(state.bodies.removeValue(forKey: request.path) == nil ? 404 : 204)
                default:
                    return state.bodies[request.path].map { WebServer.Answer(200, [], $0) }
                        ?? WebServer.Answer(404)
                }
            }
        }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.memory = .none
        var remote = CacheConfiguration.Remote(servers: [server.url()])
        remote.limit = .seconds(60)
        let path = directory.path + "/cache"
        let cache = try SharedCache(at: path, configuration: configuration, remote: remote)
        try cache.put("value", forKey: "key")
        waitUntil("it is sent") { cache.directory.remote?.waiting == 0 }
        state.withLock { $0.isFull = true }
        for number in 0..<10 { try cache.put("\(number)", forKey: "\(number)") }
        waitUntil("it has refused them often") { cache.directory.activity.remoteErrors >= 4 }
        try cache.evict("key")
        #expect(try cache.get(forKey: "key")?.source == .remote)
        #expect(cache.directory.remote?.servers.first?.breaker == "closed")
        #expect(state.withLock { $0.refusals } >= 4)
        state.withLock { $0.isFull = false }
        waitUntil("all is sent") { cache.directory.remote?.waiting == 0 }
        #expect(state.withLock { $0.bodies.count } == 11)
    }
}
