// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import Platform

/// A server that shares the values with others.
package struct Server: Sendable, Hashable {
    /// Identifies the server: all clients of the same servers must give them the same names.
    package let name: String
    /// The share of the values, relative to the weights of the other servers; 0 for none.
    package let weight: Double

    package init(name: String, weight: Double = 1) {
        self.name = name
        self.weight = weight
    }
}

/// The assignment of values to servers: highest random weight (Thaler and Ravishankar 1996), with weights by Schindelhauer
/// and Schomaker 2005.
///
/// Each server has a score for each digest, which does not depend on the others; the server with the highest score has the
/// value. So the values of a removed server are divided among the others by their shares, and an added server takes its
/// share from each of the others: nothing else moves. The order of the list does not matter.
///
/// The scores are floating-point numbers: if the C libraries of two machines differ in the last bit of a logarithm, they
/// disagree about one in 10^15 values, which is a miss.
package struct Rendezvous: Sendable {
    package let servers: [Server]
    private let seeds: [UInt64]

    package init(_ servers: [Server]) {
        self.servers = servers
        seeds = servers.map { Digest(ofKey: $0.name).word(0) }
    }

    /// Returns the index of the server that has the value, or nil if no server has a weight.
    ///
    /// - Complexity: O(*n*) in the number of servers.
    package func server(for digest: Digest) -> Int? {
        var best: Int?
        var bestScore = 0.0
        for index in servers.indices {
            let score = score(of: index, for: digest)
            if score > bestScore { (best, bestScore) = (index, score) }
        }
        return best
    }

    /// Returns the servers by descending score: the first has the value, the second has it if the first is removed.
    package func order(for digest: Digest) -> [Int] {
        let scores = servers.indices.map { score(of: $0, for: digest) }
        return servers.indices.filter { scores[$0] > 0 }.sorted { scores[$0] > scores[$1] }
    }

    /// Returns a positive score, or 0 for a server without a share.
    private func score(of index: Int, for digest: Digest) -> Double {
        let weight = servers[index].weight
        guard weight > 0, weight.isFinite else { return 0 }
        let hash = SplitMix64.mix(SplitMix64.mix(seeds[index] ^ digest.word(0)) &+ digest.word(1))
        // 52 bits and a half are exact, so the fraction is neither 0 nor 1.
        let fraction = (Double(hash >> 12) + 0.5) * 0x1p-52
        return -weight / naturalLogarithm(fraction)
    }
}
