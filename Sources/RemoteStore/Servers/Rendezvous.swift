// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The assignment of values to servers: highest random weight (Thaler and Ravishankar 1996), with weights by Schindelhauer
/// and Schomaker 2005.
///
/// Each server has a score for each digest, independent of the other servers; the server with the highest score stores
/// the value. If a server is removed, only its values move, to the other servers according to their shares; an added
/// server takes its share from each of the others. The order of the list does not matter.
///
/// The scores are floating-point numbers. If the C libraries of two machines differ in the last bit of a logarithm, the
/// machines disagree about one in 10^15 values, which then are misses.
struct Rendezvous: Sendable {
    private let weights: [Double]
    private let seeds: [UInt64]

    /// Creates the assignment.
    ///
    /// - Parameters:
    ///   - names: The names of the servers; all clients of the same servers must use the same names.
    ///   - weights: The share of the values of each server, relative to the others'; 0 for no values.
    init(_ names: [String], weights: [Double]) {
        self.weights = weights
        seeds = names.map { Digest(ofKey: $0).word(0) }
    }

    /// Returns the index of the server that stores the value, or nil if all weights are 0.
    ///
    /// - Complexity: O(*n*) in the number of servers.
    func server(for digest: Digest) -> Int? {
        var best: Int?
        var bestScore = 0.0
        for index in seeds.indices {
            let score = score(of: index, for: digest)
            if score > bestScore { (best, bestScore) = (index, score) }
        }
        return best
    }

    /// Returns a positive score, or 0 for a server without a share.
    private func score(of index: Int, for digest: Digest) -> Double {
        let weight = weights[index]
        guard weight > 0, weight.isFinite else { return 0 }
        let hash = SplitMix64.mix(SplitMix64.mix(seeds[index] ^ digest.word(0)) &+ digest.word(1))
        // 52 bits and a half are represented exactly, so the fraction is neither 0 nor 1.
        let fraction = (Double(hash >> 12) + 0.5) * 0x1p-52
        return -weight / naturalLogarithm(fraction)
    }
}
