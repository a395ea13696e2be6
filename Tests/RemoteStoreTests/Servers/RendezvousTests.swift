// SPDX-License-Identifier: Apache-2.0

import CacheStore
import TestSupport
import Testing

@testable import RemoteStore

@Suite(.takesTurns) struct RendezvousTests {
    private static let digests = (0..<10_000).map { Digest(ofKey: "key \($0)") }

    private typealias Server = (name: String, weight: Double)

    private func servers(_ count: Int) -> [Server] {
        (0..<count).map { ("server-\($0)", 1) }
    }

    private func rendezvous(_ servers: [Server]) -> Rendezvous {
        Rendezvous(servers.map(\.name), weights: servers.map(\.weight))
    }

    /// Returns the name of each digest's server.
    private func places(_ servers: [Server]) -> [String?] {
        let rendezvous = rendezvous(servers)
        return Self.digests.map { rendezvous.server(for: $0).map { servers[$0].name } }
    }

    private func shares(_ servers: [Server]) -> [String: Double] {
        var counts: [String: Double] = [:]
        for place in places(servers) { counts[place ?? "", default: 0] += 1 / Double(Self.digests.count) }
        return counts
    }

    @Test("equal servers get equal shares", arguments: [1, 2, 3, 10])
    func equalShares(_ count: Int) {
        for (_, share) in shares(servers(count)) { #expect(abs(share * Double(count) - 1) < 0.15) }
        #expect(shares(servers(count)).count == count)
    }

    @Test("shares are proportional to the weights")
    func weightedShares() throws {
        let found = shares([
            ("a", 1), ("b", 3), ("c", 6),
            ("none", 0), ("wrong", .nan),
            ("less", -1),
        ])
        for (name, share) in ["a": 0.1, "b": 0.3, "c": 0.6] {
            let measured = try #require(found[name])
            #expect(abs(measured - share) < 0.03)
        }
        #expect(found.count == 3)
    }

    @Test("removing a server moves only its own keys, evenly to the others", arguments: 0..<5)
    func removal(_ gone: Int) {
        let all = servers(5)
        var rest = all
        rest.remove(at: gone)
        var heirs: [String: Int] = [:]
        for (before, after) in zip(places(all), places(rest)) {
            if before == all[gone].name {
                heirs[after ?? "", default: 0] += 1
            } else {
                #expect(before == after)
            }
        }
        let moved = heirs.values.reduce(0, +)
        #expect(abs(Double(moved) / 10_000 - 0.2) < 0.03)
        for (_, count) in heirs { #expect(abs(Double(count) / Double(moved) - 0.25) < 0.05) }
    }

    @Test("adding a server moves only its share of the keys to it")
    func addition() {
        let before = places(servers(4))
        let after = places(servers(5))
        let moved = zip(before, after).filter { $0 != $1 }
        #expect(moved.allSatisfy { $0.1 == "server-4" })
        #expect(abs(Double(moved.count) / 10_000 - 0.2) < 0.03)
    }

    @Test("more weight for one server only moves keys to it")
    func heavier() {
        let before = places([("a", 1), ("b", 1), ("c", 1)])
        let after = places([("a", 2), ("b", 1), ("c", 1)])
        let moved = zip(before, after).filter { $0 != $1 }
        #expect(moved.allSatisfy { $0.1 == "a" })
        let part = Double(moved.count) / 10_000
        #expect(abs(part - 1.0 / 6) < 0.03)
    }

    @Test("the order of the list does not matter")
    func order() {
        let all = servers(6)
        #expect(places(all) == places(all.reversed()))
    }

    @Test("an empty list has no server")
    func none() {
        #expect(rendezvous([]).server(for: Self.digests[0]) == nil)
        #expect(rendezvous([("a", 0)]).server(for: Self.digests[0]) == nil)
    }
}
