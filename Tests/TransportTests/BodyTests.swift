// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import Transport

/// Processing of a body during its transfer.
@Suite(.takesTurns) struct BodyTests {
    let transport = Transport()
    private let body = (0..<500_000).map { UInt8(truncatingIfNeeded: $0 &* 13) }

    private func digest(_ hash: SHA256?) -> [UInt8]? {
        guard let hash else { return nil }
        let bytes = hash.finalize()
        return bytes.indices.map { bytes[$0] }
    }

    private func digest(of bytes: [UInt8]) -> [UInt8]? {
        var hash = SHA256()
        hash.update(bytes.span)
        return digest(hash)
    }

    @Test func `a digest is computed during the transfer, also of an empty body`() async throws {
        let server = try LoopbackServer { [body] peer in
            peer.answer("200 OK", [], peer.path == "/none" ? [] : body)
        }
        var request = TransportRequest(server.url())
        #expect(try await transport.perform(request).digest == nil)
        request.digest = SHA256()
        #expect(digest(try await transport.perform(request).digest) == digest(of: body))
        request.url = server.url("/none")
        #expect(digest(try await transport.perform(request).digest) == digest(of: []))
        request.url = server.url()
        request.disposition = { _ in .discard }
        #expect(try await transport.perform(request).digest == nil)
    }

    @Test func `a digest continues with a 206 and restarts with a 200`() async throws {
        let server = try LoopbackServer { [body] peer in
            peer.path == "/part"
                ? peer.answer("206 Partial Content", [], Array(body[1000...]))
                : peer.answer("200 OK", [], body)
        }
        var begun = SHA256()
        begun.update(Array(body[..<1000]).span)
        for path in ["/part", "/whole"] {
            var request = TransportRequest(server.url(path))
            request.digest = begun
            #expect(digest(try await transport.perform(request).digest) == digest(of: body))
        }
    }

    @Test func `progress increases up to the end, with the total if the server sends it`() async throws {
        let server = try LoopbackServer { [body] peer in
            if peer.path == "/known" { return peer.answer("200 OK", [], body) }
            peer.send("HTTP/1.1 200 OK\r\n\r\n")
            peer.send(body)
            return false
        }
        for (path, total) in [("/known", Int64(body.count)), ("/unknown", nil)] {
            let steps = Locked<[TransportProgress]>.Box([])
            var request = TransportRequest(server.url(path))
            request.progress = { step in steps.value.withLock { $0.append(step) } }
            _ = try await transport.perform(request)
            let seen = steps.value.withLock { $0 }
            #expect(seen.count > 1 && seen.map(\.received) == seen.map(\.received).sorted())
            #expect(seen.last == TransportProgress(received: Int64(body.count), total: total))
        }
    }

    /// Returns the bytes as compressed by gzip(1).
    private func compressed(_ bytes: Data) throws -> [UInt8] {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/file"
        try bytes.write(to: URL(fileURLWithPath: path))
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["gzip", path]
        try process.run()
        process.waitUntilExit()
        return Array(try Data(contentsOf: URL(fileURLWithPath: path + ".gz")))
    }

    @Test func `a body is decompressed only if that was requested, and never beyond its limit`() async throws
    {
        let text = Data(String(repeating: "abc", count: 10_000).utf8)
        let (small, bomb) = (try compressed(text), try compressed(Data(count: 50_000_000)))
        let server = try LoopbackServer { peer in
            peer.answer("200 OK", ["Content-Encoding: gzip"], peer.path == "/bomb" ? bomb : small)
        }
        var request = TransportRequest(server.url())
        #expect(try await transport.perform(request).body == Data(small))
        request.decodesContent = true
        let totals = Locked<Set<Int64?>>.Box([])
        request.progress = { step in totals.value.withLock { _ = $0.insert(step.total) } }
        #expect(try await transport.perform(request).body == text)
        #expect(totals.value.withLock { $0 } == [nil])
        request.url = server.url("/bomb")
        request.mostBytes = 1_000_000
        await expectFailure(.tooLarge, transport, request)
    }

    @Test func `a body that can't be decompressed is an error`() async throws {
        let server = try LoopbackServer { peer in
            let encoding = peer.path == "/wrong" ? "gzip" : String(repeating: "gzip, ", count: 20) + "gzip"
            return peer.answer("200 OK", ["Content-Encoding: \(encoding)"], Array("not that".utf8))
        }
        for path in ["/wrong", "/often"] {
            var request = TransportRequest(server.url(path))
            request.decodesContent = true
            await expectFailure(.protocolViolation, transport, request)
        }
    }

    @Test func `a full disk is a distinct error, after requests to make space`() async throws {
        let server = try LoopbackServer { $0.answer("200 OK", [], [1, 2, 3]) }
        let full = open("/dev/full", O_WRONLY)
        defer { close(full) }
        var request = TransportRequest(server.url())
        request.output = .descriptor(full)
        #expect(await expectFailure(.noSpace, transport, request)?.cause == .noSpace)
        let asked = Locked<[Int]>.Box([])
        request.makeSpace = { bytes in
            asked.value.withLock {
                $0.append(bytes)
                return $0.count < 3
            }
        }
        await expectFailure(.noSpace, transport, request)
        #expect(asked.value.withLock { $0 } == [3, 3, 3])
        // A callback that always claims to have made space is not called forever.
        request.makeSpace = { _ in true }
        await expectFailure(.noSpace, transport, request)
    }

    @Test func `the transfer continues after space was made`() async throws {
        let server = try LoopbackServer { [body] in $0.answer("200 OK", [], body) }
        let directory = try TemporaryDirectory()
        let output = open("/dev/full", O_WRONLY)
        defer { close(output) }
        var request = TransportRequest(server.url())
        request.output = .descriptor(output)
        request.makeSpace = { [path = directory.path + "/body"] _ in
            let file = open(path, O_CREAT | O_WRONLY, 0o600)
            defer { close(file) }
            return dup2(file, output) == output
        }
        #expect(try await transport.perform(request).received == Int64(body.count))
        #expect(FileManager.default.contents(atPath: directory.path + "/body") == Data(body))
    }

    @Test func `a body may be sent with any method`() async throws {
        let server = try LoopbackServer { peer in
            peer.answer("200 OK", [], peer.read(Int(peer.field("Content-Length") ?? "") ?? 0))
        }
        for method in ["POST", "GET", "PUT", "PROPFIND"] {
            var request = TransportRequest(server.url(), method: method)
            request.source = .bytes(Data("abc".utf8))
            #expect(try await transport.perform(request).body == Data("abc".utf8))
        }
        #expect(server.requests.map { $0.prefix { $0 != " " } } == ["POST", "GET", "PUT", "PROPFIND"])
    }
}
