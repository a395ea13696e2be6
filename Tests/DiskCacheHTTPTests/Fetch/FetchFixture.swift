// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// A cache with a manual clock, and a server.
final class FetchFixture: Sendable {
    let directory: TemporaryDirectory
    let clock = ManualClock()
    let cache: SharedCache
    let http: HTTPCache
    let server: WebServer

    init(
        options: HTTPCacheOptions = HTTPCacheOptions(),
        _ answer: @escaping @Sendable (WebServer.Request) -> WebServer.Answer
    ) throws {
        directory = try TemporaryDirectory()
        var configuration = CacheConfiguration()
        configuration.now = { [clock] in clock.now }
        cache = try SharedCache(at: directory.path + "/cache", configuration: configuration)
        http = HTTPCache(cache, options: options)
        server = try WebServer(answer)
    }

    func request(_ path: String = "/", _ change: (inout FetchRequest) -> Void = { _ in }) -> FetchRequest {
        var request = FetchRequest(server.url(path))
        request.retries = 0
        change(&request)
        return request
    }

    func fetch(_ path: String = "/", _ change: (inout FetchRequest) -> Void = { _ in }) async throws
        -> FetchResponse
    {
        try await http.fetch(request(path, change))
    }

    /// The error of the fetch, or nil if it succeeds.
    func failure(_ path: String = "/", _ change: (inout FetchRequest) -> Void = { _ in }) async -> FetchError?
    {
        do {
            _ = try await fetch(path, change)
            return nil
        } catch {
            return error as? FetchError
        }
    }

    /// The files of incomplete downloads.
    var partials: [String] { directory.files(below: "cache/tmp").filter { $0.hasPrefix("part-") } }

    deinit { server.stop() }
}

extension FetchResponse {
    var text: String { String(decoding: body, as: UTF8.self) }
    var line: String { cacheStatus.text(cache: "t") }
}
