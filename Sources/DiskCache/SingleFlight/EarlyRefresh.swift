// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// XFetch: whether to recompute a value before it expires.
///
/// Vattani, Chierichetti and Lowenstein, "Optimal probabilistic cache stampede prevention", VLDB 2015. Each
/// request decides for itself, by `now − cost·β·ln(draw) ≥ expires`, so that one of many is likely to do so
/// early enough, without any communication.
enum EarlyRefresh {
    /// −ln of the smallest draw, 2⁻⁵³: before so many times cost·β nobody can be early.
    private static let longestDraw = 37.0

    /// Whether this request is to refresh.
    ///
    /// - Parameters:
    ///   - rest: the time until the value expires, in seconds.
    ///   - cost: what the last computation took, in seconds.
    ///   - beta: the eagerness; 0 or less is never.
    ///   - generator: asked for one number, and only if it can make a difference.
    static func isDue(
        rest: Double,
        cost: Double,
        beta: Double,
        using generator: inout some RandomNumberGenerator
    ) -> Bool {
        let scale = cost * beta
        guard scale > 0, rest <= scale * longestDraw else { return false }
        // 1 − [0, 1): never 0, of which there is no logarithm.
        let draw = 1 - Double.random(in: 0..<1, using: &generator)
        return -scale * naturalLogarithm(draw) >= rest
    }

    /// Whether to refresh what was found.
    static func isDue(_ record: Record, beta: Double, now: Timestamp) -> Bool {
        guard beta > 0, let expires = record.expires, record.idleLifetime == nil, let cost = record.cost
        else { return false }
        var generator = SystemRandomNumberGenerator()
        return isDue(
            rest: (expires - now) / .seconds(1),
            cost: Double(cost.saturatingNanoseconds) / 1e9,
            beta: beta,
            using: &generator
        )
    }
}
