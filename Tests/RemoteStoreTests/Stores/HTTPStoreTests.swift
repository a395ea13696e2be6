// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import Platform
import TestSupport
import Testing
import Transport

@testable import RemoteStore

/// An HTTP server, used without a cache.
@Suite(.takesTurns) struct HTTPStoreTests {
    private func store(_ server: WebServer, longest: Int64 = 16 << 20) throws -> HTTPStore {
        let paths = try #require(RemotePaths())
        let address = try RemoteAddress(server.url())
        let security = TransportSecurity()
        return HTTPStore(address, paths, .action, as: .anybody, security, longest: longest, over: Transport())
    }

    @Test func `a head that begins with a folded line is an error, and later requests succeed`() throws {
        let gets = Locked(0)
        let long = (0..<40).map { "X-\($0): \(String(repeating: "x", count: 10 + $0 * 40))" }
        let server = try WebServer { request in
            let number = gets.withLock { gets in
                gets += 1
                return gets
            }
            guard number % 2 == 0 else { return WebServer.Answer(404, long) }
            var answer = WebServer.Answer()
            answer.raw = Data("HTTP/1.1 200 OK\r\n folded\r\nContent-Length: 1\r\n\r\nx".utf8)
            return answer
        }
        defer { server.stop() }
        let store = try store(server)
        for round in 0..<300 {
            do throws(RemoteFailure) {
                let key = Digest(of: Array("\(round)".utf8).span)
                #expect(try store.get(key, until: .now + hangLimit) == nil)
            } catch {
                #expect(round % 2 == 1 && (error.kind == .failed || error.kind == .wrong), "\(error)")
            }
        }
        #expect(gets.withLock { $0 } == 300)
    }

    /// 412: the entry exists; 409: S3 is storing another one; 501: the server does not support the condition.
    @Test(arguments: [(201, 1), (412, 1), (409, 1), (501, 2)])
    func `a put that must not replace an entry is conditional`(status: Int, count: Int) throws {
        let requests = Locked<[String?]>([])
        let server = try WebServer { request in
            let condition = request["If-None-Match"]
            requests.withLock { $0.append(condition) }
            return WebServer.Answer(condition == nil ? 201 : status)
        }
        defer { server.stop() }
        let key = Digest(ofKey: "key")
        let content = Content(of: Data("value".utf8).span)
        let record = Record(content: content, created: .now).encoded(for: key)
        let parcel = RemoteEntry(record: record, bytes: Data("value".utf8), digest: content.digest)
        let store = try store(server)
        try store.put(key, parcel, ifMissing: true, until: .now + hangLimit)
        #expect(requests.withLock { $0 } == Array((["*", nil] as [String?]).prefix(count)))
        try store.put(key, parcel, until: .now + hangLimit)
        #expect(requests.withLock { $0.last } == .some(nil))
    }

    @Test(arguments: [Int64.max, Int64.max - 1, Int64.max / 2 + 1])
    func `the maximum size can be close to the maximum integer`(size: Int64) throws {
        let bodies = Locked<[String: Data]>([:])
        let server = try WebServer { request in
            bodies.withLock { bodies in
                if request.method == "PUT" { bodies[request.path] = request.body }
                return bodies[request.path].map { WebServer.Answer(200, [], $0) } ?? WebServer.Answer(404)
            }
        }
        defer { server.stop() }
        let directory = try TemporaryDirectory()
        var remote = CacheConfiguration.Remote(servers: [server.url(), "redis://127.0.0.1:1"])
        remote.maximumSize = size
        remote.limit = .seconds(3600)
        let cache = try SharedCache(at: directory.path + "/cache", remote: remote)
        try cache.put("value", forKey: "key")
        #expect(try cache.get(forKey: "key") != nil)
        for number in 0..<8 { #expect(try cache.get(forKey: "\(number)") == nil) }
    }

    @Test func `requests to a store ignore the environment's proxy`() throws {
        let address = try RemoteAddress("http://store.example:8080/base")
        let store = HTTPStore(
            address,
            try #require(RemotePaths()),
            .action,
            as: .basic(TransportCredentials(user: "user", password: "word")),
            TransportSecurity(),
            longest: 1 << 20,
            over: Transport()
        )
        for method in ["GET", "PUT", "DELETE"] {
            let request = store.makeRequest(method, "/ac/x")
            #expect(request.proxy == .none)
            #expect(request.url == "http://store.example:8080/base/ac/x" && request.method == method)
        }
    }
}
