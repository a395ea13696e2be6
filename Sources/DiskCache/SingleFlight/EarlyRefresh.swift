// SPDX-License-Identifier: Apache-2.0

import CacheStore
import Platform

/// The XFetch rule, which decides whether to recompute a value before it expires.
///
/// Vattani, Chierichetti and Lowenstein, "Optimal probabilistic cache stampede prevention", VLDB 2015. Each request
/// decides independently, by `now − cost·β·ln(draw) ≥ expires`, so that one of many requests is likely to refresh the
/// value early enough, without any communication.
enum EarlyRefresh {
    /// An upper bound of −ln(draw), as the smallest draw is 2⁻⁵³: no request refreshes a value earlier than this many
    /// times cost·β before it expires.
    private static let longestDraw = 37.0

    /// Returns whether this request must refresh the value.
    ///
    /// - Parameters:
    ///   - rest: the time until the value expires, in seconds.
    ///   - cost: the duration of the last computation, in seconds.
    ///   - beta: the eagerness; 0 or less means never.
    ///   - generator: the source of the draw, used once, and only if the draw can affect the result.
    static func isDue(
        rest: Double,
        cost: Double,
        beta: Double,
        using generator: inout some RandomNumberGenerator
    ) -> Bool {
        let scale = cost * beta
        guard scale > 0, rest <= scale * longestDraw else { return false }
        // 1 − [0, 1) is never 0, whose logarithm is undefined.
        let draw = 1 - Double.random(in: 0..<1, using: &generator)
        return -scale * naturalLogarithm(draw) >= rest
    }

    /// Returns whether this request must refresh a value with this record.
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
