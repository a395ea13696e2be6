// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import Transport

/// A server that may send anything, over reused connections and handles.
@Suite(.takesTurns) struct AnyResponseTests {
    /// The first number; a failure reports its number, which reproduces the response.
    private static let first = isSoak ? UInt64.random(in: 0..<1 << 40) : 17
    private static let rounds = isSoak ? 500_000 : 2_000
    private static let workers = 4

    /// Sends the response for the path's number, or for 0 if a mistake has removed the number.
    private static func answer(_ peer: Peer, _ places: AnyResponse.Places) -> Bool {
        if let length = peer.field("Content-Length").flatMap({ Int($0) }) { _ = peer.read(length) }
        let parts = peer.path.dropFirst().split(separator: "-").map { UInt64($0) ?? 0 }
        let number = parts.first ?? 0
        let redirects = parts.count > 1 ? Int(parts[1] % 4) : 0
        let response = AnyResponse(number, redirects: redirects, isHead: peer.head.hasPrefix("HEAD "), places)
        var rest = response.bytes[...]
        // Most are sent at once, some in pieces that are likely to arrive separately.
        let step = number % 5 == 0 ? max(1, rest.count / 7) : max(1, rest.count)
        while !rest.isEmpty {
            guard peer.send(rest.prefix(step)) else { return false }
            rest = rest.dropFirst(step)
        }
        guard case .kept = response.ending else {
            if case .endless = response.ending, let last = response.bytes.last {
                let flood = Array(response.bytes.suffix(1000)) + [last]
                while peer.send(flood) {}
            }
            return false
        }
        return true
    }

    @Test func `any server output results in one outcome, and every valid response is received`()
        async throws
    {
        let places = Locked(AnyResponse.Places(good: "", bad: ""))
        let answer: LoopbackServer.Handler = { peer in Self.answer(peer, places.withLock { $0 }) }
        let good = try LoopbackServer(remembersRequests: false, answer)
        let bad = try LoopbackServer(remembersRequests: false, answer)
        let both = AnyResponse.Places(good: good.url(), bad: bad.url())
        places.withLock { $0 = both }
        let transport = Transport(mostTransfers: Self.workers)
        await withTaskGroup { group in
            for worker in 0..<Self.workers {
                group.addTask {
                    for round in stride(from: worker, to: Self.rounds, by: Self.workers) {
                        await Self.check(Self.first &+ UInt64(round), both, transport)
                    }
                }
            }
        }
    }

    private static func check(_ number: UInt64, _ places: AnyResponse.Places, _ transport: Transport) async {
        var generator = SeededGenerator(seed: ~number)
        let method = ["GET", "GET", "GET", "GET", "HEAD", "PUT"][Int.random(in: 0..<6, using: &generator)]
        let response = AnyResponse(number, isHead: method == "HEAD", places)
        var request = TransportRequest(response.url, method: method)
        if method == "PUT" {
            request.body = Data(count: Int.random(in: 0..<100_000, using: &generator))
        }
        request.mostBytes = 200_000
        request.proxy = .none
        // Only a transfer that hangs takes this long.
        request.timeLimit = .seconds(600)
        let disposition: TransportRequest.Disposition =
            [.keep, .keep, .keep, .keep, .discard, .stop][Int.random(in: 0..<6, using: &generator)]
        request.disposition = { _ in disposition }
        do throws(TransportError) {
            let outcome = try await transport.perform(request)
            guard let expected = response.outcome else { return }
            // Redirects are not followed, and their bodies are not known here.
            guard outcome.status != 302 else { return }
            let isRight =
                outcome.status == expected.status
                && (disposition != .keep || outcome.body == Data(expected.body))
            #expect(isRight, "number \(number): \(outcome.status), \(outcome.body.count) bytes")
        } catch {
            #expect(response.outcome == nil, "number \(number): \(error.code), \(error)")
            #expect(
                error.code != .timedOut && error.code != .other,
                "number \(number): \(error.code), \(error)"
            )
        }
    }
}
