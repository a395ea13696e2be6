// SPDX-License-Identifier: Apache-2.0

package import CacheStore
import Platform

/// A server that stores a share of the values.
package struct Server: Sendable, Hashable {
    /// The name that identifies the server; all clients of the same servers must use the same names.
    package let name: String
    /// The share of the values, relative to the other servers' weights; 0 for no values.
    package let weight: Double

    package init(name: String, weight: Double = 1) {
        self.name = name
        self.weight = weight
    }
}

/// The assignment of values to servers: highest random weight (Thaler and Ravishankar 1996), with weights by Schindelhauer
/// and Schomaker 2005.
///
/// Each server has a score for each digest, independent of the other servers; the server with the highest score stores
/// the value. If a server is removed, only its values move, to the other servers according to their shares; an added
/// server takes its share from each of the others. The order of the list does not matter.
///
/// The scores are floating-point numbers. If the C libraries of two machines differ in the last bit of a logarithm, the
/// machines disagree about one in 10^15 values, which then are misses.
package struct Rendezvous: Sendable {
    package let servers: [Server]
    private let seeds: [UInt64]

    package init(_ servers: [Server]) {
        self.servers = servers
        seeds = servers.map { Digest(ofKey: $0.name).word(0) }
    }

    /// Returns the index of the server that stores the value, or nil if all weights are 0.
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

    /// Returns the servers by descending score: the first stores the value; if it is removed, the second does.
    package func order(for digest: Digest) -> [Int] {
        let scores = servers.indices.map { score(of: $0, for: digest) }
        return servers.indices.filter { scores[$0] > 0 }.sorted { scores[$0] > scores[$1] }
    }

    /// Returns a positive score, or 0 for a server without a share.
    private func score(of index: Int, for digest: Digest) -> Double {
        let weight = servers[index].weight
        guard weight > 0, weight.isFinite else { return 0 }
        let hash = SplitMix64.mix(SplitMix64.mix(seeds[index] ^ digest.word(0)) &+ digest.word(1))
        // 52 bits and a half are represented exactly, so the fraction is neither 0 nor 1.
        let fraction = (Double(hash >> 12) + 0.5) * 0x1p-52
        return -weight / naturalLogarithm(fraction)
    }
}
