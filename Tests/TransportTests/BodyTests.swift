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

    @Test func `a compressed body is returned as it is`() async throws {
        let small = try compressed(Data(String(repeating: "abc", count: 10_000).utf8))
        let server = try LoopbackServer { $0.answer("200 OK", ["Content-Encoding: gzip"], small) }
        #expect(try await transport.perform(TransportRequest(server.url())).body == Data(small))
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
            request.body = Data("abc".utf8)
            #expect(try await transport.perform(request).body == Data("abc".utf8))
        }
        #expect(server.requests.map { $0.prefix { $0 != " " } } == ["POST", "GET", "PUT", "PROPFIND"])
    }
}
