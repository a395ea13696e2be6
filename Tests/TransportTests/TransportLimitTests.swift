// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import Transport

/// Deadlines, cancellation and slow readers.
@Suite(.takesTurns) struct TransportLimitTests {
    let transport = Transport()

    /// Returns a server that never answers and waits until the client has closed.
    private func silentServer() throws -> LoopbackServer {
        try LoopbackServer { peer in
            peer.waitForEnd()
            return false
        }
    }

    @Test func `a deadline of milliseconds ends a transfer without a response`() async throws {
        let server = try silentServer()
        var request = TransportRequest(server.url())
        request.timeLimit = .milliseconds(30)
        await expectFailure(.timedOut, transport, request)
        let time = shortestTime(below: .milliseconds(500)) {
            #expect(throws: TransportError.self) { try blocking(transport, request) }
        }
        #expect(time >= .milliseconds(30))
        #expect(time < .milliseconds(500))
    }

    @Test func `a slow trickle of bytes does not extend the deadline`() async throws {
        let server = try LoopbackServer { peer in
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while peer.send("x") { usleep(2000) }
            return false
        }
        var request = TransportRequest(server.url())
        request.timeLimit = .milliseconds(100)
        await expectFailure(.timedOut, transport, request)
    }

    @Test func `a server that stalls in the middle of a body times out`() async throws {
        let server = try LoopbackServer { peer in
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
            peer.waitForEnd()
            return false
        }
        var request = TransportRequest(server.url())
        request.stallLimit = .milliseconds(50)
        await expectFailure(.timedOut, transport, request)
    }

    @Test func `a server that sends a byte now and then times out, and a slow reader does not`() async throws
    {
        let server = try LoopbackServer { peer in
            peer.send("HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n")
            for _ in 0..<40 {
                guard peer.send("x") else { break }
                usleep(250_000)
            }
            return false
        }
        var request = TransportRequest(server.url())
        // Fewer than 4 bytes in 0.8 s; in the first interval the bytes are those of the head.
        request.stallLimit = .milliseconds(400)
        await expectFailure(.timedOut, transport, request)

        let whole = try LoopbackServer { $0.answer("200 OK", [], [UInt8](repeating: 1, count: 200_000)) }
        request.url = whole.url()
        request.mayGrow = { _ in
            usleep(300_000)
            return true
        }
        request.stallLimit = .milliseconds(100)
        #expect(try await transport.perform(request).received == 200_000)
    }

    @Test func `cancelling ends a transfer that waits for the server`() async throws {
        let server = try silentServer()
        let task = Task { await expectFailure(.cancelled, transport, TransportRequest(server.url())) }
        await waitUntil("it was asked") { !server.requests.isEmpty }
        task.cancel()
        #expect(await task.value != nil)
    }

    @Test func `a task that is already cancelled sends no request`() async throws {
        let server = try silentServer()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            await expectFailure(.cancelled, transport, TransportRequest(server.url()))
        }
        await task.value
        #expect(server.connections == 0)
    }

    @Test func `a transfer that waits for a thread ends at its deadline or when cancelled`() async throws {
        let transport = Transport(mostTransfers: 1)
        let server = try silentServer()
        let first = Task { await expectFailure(.cancelled, transport, TransportRequest(server.url())) }
        await waitUntil("it was asked") { !server.requests.isEmpty }

        var request = TransportRequest(server.url())
        request.timeLimit = .milliseconds(30)
        await expectFailure(.timedOut, transport, request)
        let waiting = Task { await expectFailure(.cancelled, transport, TransportRequest(server.url())) }
        waiting.cancel()
        #expect(await waiting.value != nil)
        #expect(server.connections == 1)
        first.cancel()
        #expect(await first.value != nil)
    }

    @Test func `the transport works after a failure`() async throws {
        let server = try LoopbackServer { peer in
            if peer.path == "/silent" {
                peer.waitForEnd()
                return false
            }
            return peer.answer("200 OK", [], [1])
        }
        let transport = Transport(mostTransfers: 1)
        for _ in 0..<10 {
            var request = TransportRequest(server.url("/silent"))
            request.timeLimit = .milliseconds(10)
            await expectFailure(.timedOut, transport, request)
            #expect(try await transport.perform(TransportRequest(server.url("/good"))).body == Data([1]))
        }
    }

    @Test func `a descriptor that can't be written is an error`() async throws {
        let server = try LoopbackServer { $0.answer("200 OK", [], [1]) }
        let file = open("/dev/null", O_RDONLY)
        defer { close(file) }
        var request = TransportRequest(server.url())
        request.output = .descriptor(file)
        #expect(await expectFailure(.outputFailed, transport, request)?.cause == .badDescriptor)
    }

    @Test func `huge limits are no limits`() async throws {
        let server = try LoopbackServer { $0.answer("200 OK", [], [1]) }
        let transport = Transport(mostTransfers: 1)
        for limit: Duration in [.seconds(Int64.max), .seconds(1_000_000_000), .nanoseconds(Int64.max)] {
            var request = TransportRequest(server.url())
            request.timeLimit = limit
            request.connectLimit = limit
            request.stallLimit = limit
            #expect(try await transport.perform(request).body == Data([1]))
            #expect(try blocking(transport, request).body == Data([1]))
            // More transfers than threads can run: one waits, with an alarm.
            let limited = request
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<5 { group.addTask { try await transport.perform(limited).status } }
                for try await status in group { #expect(status == 200) }
            }
        }
    }

    @Test func `a limit that has already passed times out`() async throws {
        let server = try silentServer()
        for limit: Duration in [.zero, .seconds(-1), .seconds(Int64.min)] {
            var request = TransportRequest(server.url())
            request.timeLimit = limit
            await expectFailure(.timedOut, transport, request)
        }
    }

    @Test func `if no thread can be created, a task gets an error and a blocking caller succeeds`() throws {
        let server = try LoopbackServer { $0.answer("200 OK", [], [1]) }
        let lines = CurlSessionPool(limit: 2) { () throws(TransportError) in try LibCurl.system.get() }
        let outcome = Locked<Transfer.Outcome?>.Box(nil)
        let call = Transfer(TransportRequest(server.url()))
        #expect(call.start { result in outcome.value.withLock { $0 = result } })
        try SystemCall.withFaults {
            $0 == .makeThread ? .error(.outOfMemory) : nil
        } _: {
            lines.run(call)
            let response = try lines.perform(Transfer(TransportRequest(server.url())))
            #expect(response.body == Data([1]))
        }
        let result = try #require(outcome.value.withLock { $0 })
        #expect(throws: TransportError.self) { try result.get() }
        if case .failure(let error) = result { #expect(error.code == .noResources) }
    }
}
