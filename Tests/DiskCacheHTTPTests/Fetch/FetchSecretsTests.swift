// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import TestSupport
import Testing

@testable import DiskCacheHTTP

/// Credentials in any request field.
@Suite(.takesTurns) struct FetchSecretsTests {
    static let names = [
        "Authorization", "Cookie", "Cookie2", "Proxy-Authorization", "X-Api-Key", "Private-Token",
        "X-Auth-Token",
        "X-Vault-Token", "Job-Token", "X-JFrog-Art-Api", "X-Anything",
    ]

    @Test(arguments: names) func `redirects send no credentials to other servers`(name: String) async throws {
        let other = try FetchFixture { _ in WebServer.Answer(200, [], Data("b".utf8)) }
        let target = other.server.url("/b")
        let place = try FetchFixture { request in
            if request.path == "/a" { return WebServer.Answer(302, ["Location: /aa"]) }
            if request.path == "/aa" { return WebServer.Answer(302, ["Location: \(target)"]) }
            return WebServer.Answer(404)
        }
        let fields = [(name, "tOken1"), ("Accept", "a/a"), ("X-Mine", "plain")]
        let response = try await place.fetch("/a") {
            $0.fields = fields
            $0.plainFields = ["x-mine"]
        }
        #expect(response.text == "b")
        #expect(place.server.requests.map { $0[name] } == ["tOken1", "tOken1"])
        let last = try #require(other.server.requests.last)
        #expect(last[name] == nil && last["Accept"] == "a/a" && last["X-Mine"] == "plain")
        #expect(!last.fields.contains { $0.value.contains("tOken1") })
    }

    @Test(arguments: names) func `a response is only for the same credentials`(name: String) async throws {
        let place = try FetchFixture { request in
            WebServer.Answer(200, ["Cache-Control: max-age=60"], Data((request[name] ?? "none").utf8))
        }
        for isHit in [false, true] {
            for value in ["tOken1", "tOken2", nil] {
                let response = try await place.fetch { $0.fields = value.map { [(name, $0)] } ?? [] }
                #expect(response.text == value ?? "none" && response.cacheStatus.isHit == isHit)
            }
        }
    }

    @Test(arguments: [names, []]) func `credentials are never written to disk, even if Vary names them`(
        vary: [String]
    ) async throws {
        let body = Data(count: 1000)
        let place = try FetchFixture { request in
            let varies = vary.isEmpty ? [] : ["Vary: \(vary.joined(separator: ", "))"]
            let cut = request.path == "/cut" ? 100 : nil
            return WebServer.Answer(
                200,
                ["Cache-Control: max-age=60", "ETag: \"a\""] + varies,
                body,
                cut: cut
            )
        }
        let fields = Self.names.map { ($0, "tOken1") }
        let response = try await place.fetch { $0.fields = fields }
        #expect(response.cacheStatus.isStored && response.cacheStatus.key?.contains("tOken1") == false)
        #expect(try await place.fetch { $0.fields = fields }.cacheStatus.isHit)
        // An interrupted download also has a note on disk.
        #expect(await place.failure("/cut") { $0.fields = fields }?.code == .truncated)
        #expect(place.partials.count == 1)
        let root = place.directory.path
        for file in place.directory.files() {
            let bytes = FileManager.default.contents(atPath: root + "/" + file)
            #expect(bytes?.range(of: Data("tOken1".utf8)) == nil, "\(file)")
        }
        let partial = try #require(place.partials.first)
        let file = try FileDescriptor(opening: root + "/cache/tmp/" + partial, .readOnly)
        let note = String(decoding: try #require(try file.attribute("user.dcp")), as: UTF8.self)
        #expect(note.contains("ETag") && !note.contains("tOken1"))
        let heads = try await place.cache.blocking { cache in
            try cache.entries().map { try $0.get() }.map { "\($0.key ?? "")\($0.metadata)" }
        }
        #expect(heads.count >= 2 && heads.allSatisfy { !$0.contains("tOken1") })
    }

    @Test func `fields that are known to be harmless, or that the caller names, don't separate responses`()
        async throws
    {
        let place = try FetchFixture { _ in
            WebServer.Answer(200, ["Cache-Control: max-age=60"], Data("a".utf8))
        }
        _ = try await place.fetch()
        for name in ["User-Agent", "Accept", "X-Request-Id", "traceparent", "X-Mine"] {
            let response = try await place.fetch {
                $0.fields = [(name, "1")]
                $0.plainFields = ["X-Mine"]
            }
            #expect(response.cacheStatus.isHit, "\(name)")
        }
    }

    @Test(arguments: ["authorization", "Cookie", "Proxy-Authorization"])
    func `a field that always holds credentials can't be declared plain`(name: String) async throws {
        let place = try FetchFixture { _ in WebServer.Answer() }
        #expect(await place.failure { $0.plainFields = [name] }?.code == .invalidRequest)
    }
}
