// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import Transport

/// Bodies that are read as they arrive.
@Suite(.takesTurns) struct StreamTests {
    let transport = Transport()

    /// Returns a server that sends an endless body and counts its bytes.
    private func endless(_ sent: Locked<Int>.Box) throws -> LoopbackServer {
        try LoopbackServer { peer in
            peer.send("HTTP/1.1 200 OK\r\n\r\n")
            let piece = [UInt8](repeating: 1, count: 65536)
            while peer.send(piece) { sent.value.withLock { $0 += piece.count } }
            return false
        }
    }

    @Test func `the pieces add up to the body`() async throws {
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

    @Test func `an empty or discarded body ends at once`() async throws {
        let server = try LoopbackServer { $0.answer("404 Not Found", [], $0.path == "/none" ? [] : [1]) }
        for path in ["/none", "/some"] {
            var request = TransportRequest(server.url(path))
            request.disposition = { _ in .discard }
            let stream = try await transport.open(request)
            #expect(stream.response.status == 404)
            for try await _ in stream { Issue.record("a piece") }
        }
    }

    @Test func `a reader that pauses stalls the server and later gets the whole body`() async throws {
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
        // A slow reader does not count as a stall.
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

    @Test func `dropping the stream ends the transfer`() async throws {
        let server = try endless(Locked<Int>.Box(0))
        do {
            let stream = try await transport.open(TransportRequest(server.url()))
            var pieces = stream.makeAsyncIterator()
            #expect(try await pieces.next() != nil)
            #expect(server.openConnections == 1)
        }
        await waitUntil("the connection is closed") { server.openConnections == 0 }
    }

    @Test func `a cancelled reader gets an error, and the transfer ends`() async throws {
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

    @Test func `bytes received before a failure are read first`() async throws {
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

    @Test func `a failure before the body is thrown by opening the stream`() async throws {
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
        // On a busy machine the limit may expire before the head arrives: then the next one is longer.
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

    @Test func `a gibibyte is received in constant memory, to a descriptor and in pieces`() async {
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
            // Load the library before the measurement.
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

/// Returns the peak resident memory of this process in bytes; see proc_pid_status(5).
private func peakOfMemory() throws -> Int {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
    let words = line.split(separator: " ")
    return try #require(words.dropLast().last.flatMap { Int($0.filter(\.isNumber)) }) * 1024
}
