// SPDX-License-Identifier: Apache-2.0

import DiskCache
import DiskCacheHTTP
import DiskCacheURLProtocol
import Foundation
import Glibc
import Platform
import TestSupport
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `URLSession` over the shared cache.
@Suite(.takesTurns, .serialized) struct DiskCacheURLProtocolTests {
    @Test func `a session sends one request, and gets the same response from the cache`() async throws {
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

    @Test func `each session sends its own fields, and gets the matching responses`() async throws {
        let directory = try TemporaryDirectory()
        let server = try WebServer { request in
            let lines = request.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
            return WebServer.Answer(200, ["Cache-Control: max-age=60"], Data(lines.utf8))
        }
        defer { server.stop() }
        let cache = try await SharedCache.open(at: directory.path + "/cache")
        let url = try #require(URL(string: server.url("/a")))
        func session(_ token: String) -> URLSession {
            let configuration = URLSessionConfiguration.ephemeral
            configuration.httpAdditionalHeaders = ["X-Token": token, "X-Common": "session"]
            DiskCacheURLProtocol.use(HTTPCache(cache), in: configuration)
            return URLSession(configuration: configuration)
        }
        let sessions = [session("one"), session("two"), session("three")]
        for _ in 0..<2 {
            for (session, token) in zip(sessions, ["one", "two", "three"]) {
                var request = URLRequest(url: url)
                request.setValue("request", forHTTPHeaderField: "x-common")
                let text = String(decoding: try await session.data(for: request).0, as: UTF8.self)
                    .lowercased()
                #expect(text.contains("x-token: \(token)\r\n") && text.contains("x-common: request\r\n"))
                #expect(!text.contains("x-common: session"))
            }
        }
        #expect(server.requests.count == 3, "each was stored apart")
        sessions.forEach { $0.invalidateAndCancel() }
    }

    @Test func `a GET with a body is left to the session`() throws {
        let configuration = URLSessionConfiguration.ephemeral
        let directory = try TemporaryDirectory()
        DiskCacheURLProtocol.use(HTTPCache(try SharedCache(at: directory.path + "/cache")), in: configuration)
        let protocolClass = try #require(configuration.protocolClasses?.first as? URLProtocol.Type)
        var request = URLRequest(url: try #require(URL(string: "http://127.0.0.1/")))
        #expect(protocolClass.canInit(with: request))
        request.httpBody = Data("body".utf8)
        #expect(!protocolClass.canInit(with: request))
        request.httpBody = nil
        request.httpMethod = "POST"
        #expect(!protocolClass.canInit(with: request))
    }

    @Test(arguments: [.infinity, -.infinity, .nan, .greatestFiniteMagnitude, 1e18, 60])
    func `a request with any timeout interval succeeds`(seconds: TimeInterval) async throws {
        let directory = try TemporaryDirectory()
        let server = try WebServer { _ in WebServer.Answer(200, [], Data("hello".utf8)) }
        defer { server.stop() }
        let cache = try await SharedCache.open(at: directory.path + "/cache")
        let configuration = URLSessionConfiguration.ephemeral
        DiskCacheURLProtocol.use(HTTPCache(cache), in: configuration)
        let session = URLSession(configuration: configuration)
        var request = URLRequest(url: try #require(URL(string: server.url("/a"))))
        request.timeoutInterval = seconds
        #expect(try await session.data(for: request).0 == Data("hello".utf8))
        session.invalidateAndCancel()
    }

    @Test func `a session that is cancelled at any time calls each completion handler once`() throws {
        let directory = try TemporaryDirectory()
        let server = try WebServer { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("hello".utf8))
        }
        defer { server.stop() }
        let configuration = URLSessionConfiguration.ephemeral
        let cache = try SharedCache(at: directory.path + "/cache")
        DiskCacheURLProtocol.use(HTTPCache(cache), in: configuration)
        let url = try #require(URL(string: server.url("/a")))
        let answers = Locked<[Int]>.Box([])
        for round in 0..<200 {
            let session = URLSession(configuration: configuration)
            let task = session.dataTask(with: url) { data, _, error in
                let isRight = data == Data("hello".utf8) || (error as? URLError)?.code == .cancelled
                #expect(isRight, "\(String(describing: error))")
                answers.value.withLock { $0.append(round) }
            }
            task.resume()
            // Cancel at once, a moment later, or just after the response.
            if round % 4 == 3 {
                while !answers.value.withLock({ $0.contains(round) }) { sched_yield() }
            } else {
                for _ in 0..<(round % 4 * 20) { sched_yield() }
            }
            session.invalidateAndCancel()
        }
        waitUntil("all are told") { answers.value.withLock { Set($0).count } == 200 }
        #expect(answers.value.withLock { $0.sorted() } == Array(0..<200))
    }
}
