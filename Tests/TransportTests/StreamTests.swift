// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import Transport

/// Bodies that are read as they come.
@Suite(.takesTurns) struct StreamTests {
    let transport = Transport()

    /// Sends without an end, and counts.
    private func endless(_ sent: Locked<Int>.Box) throws -> LoopbackServer {
        try LoopbackServer { peer in
            peer.send("HTTP/1.1 200 OK\r\n\r\n")
            let piece = [UInt8](repeating: 1, count: 65536)
            while peer.send(piece) { sent.value.withLock { $0 += piece.count } }
            return false
        }
    }

    @Test func `the pieces are the body`() async throws {
        let body = (0..<2_000_000).map { UInt8(truncatingIfNeeded: $0 &* 17) }
        let server = try LoopbackServer { $0.answer("200 OK", ["ETag: \"x\""], body) }
        var request = TransportRequest(server.url())
        request.digest = SHA256()
        let stream = try await transport.open(request)
        #expect(stream.response.status == 200 && stream.response.values("etag") == ["\"x\""])
        var read = Data()
        for try await piece in stream {
            #expect(!piece.isEmpty)
            read += piece
        }
        #expect(read == Data(body))
        #expect(stream.ended?.received == 2_000_000)
        #expect(stream.ended?.digest != nil)
    }

    @Test func `a body without a byte ends at once, and so does one that is not kept`() async throws {
        let server = try LoopbackServer { $0.answer("404 Not Found", [], $0.path == "/none" ? [] : [1]) }
        for path in ["/none", "/some"] {
            var request = TransportRequest(server.url(path))
            request.disposition = { _ in .discard }
            let stream = try await transport.open(request)
            #expect(stream.response.status == 404)
            for try await _ in stream { Issue.record("a piece") }
        }
    }

    @Test func `who does not read holds the server up, and gets all of it later`() async throws {
        let count = 64 << 20
        let sent = Locked<Int>.Box(0)
        let server = try LoopbackServer { peer in
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n")
            let piece = [UInt8](repeating: 1, count: 65536)
            for _ in 0..<count / piece.count where peer.send(piece) {
                sent.value.withLock { $0 += piece.count }
            }
            return true
        }
        var request = TransportRequest(server.url())
        // Whoever is slow himself does not count.
        request.stallLimit = .milliseconds(100)
        let stream = try await transport.open(request)
        var before = -1
        await waitUntil("the server is held up") {
            let now = sent.value.withLock { $0 }
            defer { before = now }
            usleep(200_000)
            return now > 0 && now == before
        }
        #expect(sent.value.withLock { $0 } < count)
        var read = 0
        for try await piece in stream { read += piece.count }
        #expect(read == count)
    }

    @Test func `a reader that goes ends the transfer`() async throws {
        let server = try endless(Locked<Int>.Box(0))
        do {
            let stream = try await transport.open(TransportRequest(server.url()))
            var pieces = stream.makeAsyncIterator()
            #expect(try await pieces.next() != nil)
            #expect(server.openConnections == 1)
        }
        await waitUntil("the connection is closed") { server.openConnections == 0 }
    }

    @Test func `a reader that is cancelled gets an error, and the transfer ends`() async throws {
        let server = try LoopbackServer { peer in
            peer.send("HTTP/1.1 200 OK\r\n\r\nabc")
            peer.waitForEnd()
            return false
        }
        let stream = try await transport.open(TransportRequest(server.url()))
        let read = Locked<Int>.Box(0)
        let task = Task {
            do throws(TransportError) {
                for try await piece in stream { read.value.withLock { $0 += piece.count } }
                return nil as TransportError.Code?
            } catch {
                return error.code
            }
        }
        await waitUntil("it waits for more") { read.value.withLock { $0 } == 3 }
        task.cancel()
        #expect(await task.value == .cancelled)
        await waitUntil("the connection is closed") { server.openConnections == 0 }
    }

    @Test func `what came before a failure is read first`() async throws {
        let server = try LoopbackServer { peer in
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            return false
        }
        let stream = try await transport.open(TransportRequest(server.url()))
        var pieces = stream.makeAsyncIterator()
        #expect(try await pieces.next() == Data("abc".utf8))
        let error = await #expect(throws: TransportError.self) { try await pieces.next() }
        #expect(error?.code == .truncated)
        #expect(stream.ended == nil)
    }

    @Test func `a failure before the body is one of opening it`() async throws {
        let server = try LoopbackServer { _ in false }
        let error = await #expect(throws: TransportError.self) {
            try await transport.open(TransportRequest(server.url()))
        }
        #expect(error?.code == .truncated)
    }

    @Test func `the time limit counts until the last piece is read`() async throws {
        let sent = Locked<Int>.Box(0)
        let server = try endless(sent)
        var request = TransportRequest(server.url())
        // On a busy machine the limit may be over before the head is there: then the next one is longer.
        var limit = Duration.milliseconds(200)
        var opened: TransportStream?
        while opened == nil {
            request.timeLimit = limit
            do throws(TransportError) {
                opened = try await transport.open(request)
            } catch {
                guard error.code == .timedOut, limit < hangLimit else { throw error }
                limit *= 4
            }
        }
        let stream = try #require(opened)
        let error = await #expect(throws: TransportError.self) {
            for try await _ in stream { usleep(1000) }
        }
        #expect(error?.code == .timedOut)
    }

    @Test func `a gibibyte comes in constant memory, into a file's descriptor and in pieces`() async {
        await #expect(processExitsWith: .success) {
            let count = 1 << 30
            let server = try LoopbackServer { peer in
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n")
                guard peer.head.hasPrefix("GET ") else { return true }
                let piece = [UInt8](repeating: 1, count: 1 << 18)
                for _ in 0..<count / piece.count where !peer.send(piece) { return false }
                return true
            }
            let transport = Transport()
            // The library is opened.
            _ = try await transport.perform(TransportRequest(server.url(), method: "HEAD"))
            let before = try peakOfMemory()
            var request = TransportRequest(server.url())
            request.digest = SHA256()
            let null = open("/dev/null", O_WRONLY)
            request.output = .descriptor(null)
            #expect(try await transport.perform(request).received == Int64(count))
            var read = 0
            for try await piece in try await transport.open(request) { read += piece.count }
            #expect(read == count)
            #expect(try peakOfMemory() - before < 32 << 20)
        }
    }
}

/// The most that this process has had in memory, proc_pid_status(5); bytes.
private func peakOfMemory() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
    let words = line.split(separator: " ")
    return try #require(words.dropLast().last.flatMap { Int($0.filter(\.isNumber)) }) * 1024
}
