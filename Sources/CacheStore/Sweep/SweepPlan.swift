// SPDX-License-Identifier: Apache-2.0

/// The candidates to evict: a pure function of the scan's results and the excess.
///
/// Candidates are evicted in the given order, the least recently used first, until the limits hold. So a plan consists of
/// a number of candidates for each reason, one reason after the other.
struct SweepPlan: Sendable {
    /// The number of evictions for each reason.
    private(set) var parts: [(reason: RemovalReason, count: Int)] = []

    var count: Int { parts.reduce(0) { $0 + $1.count } }

    /// Plans the evictions.
    ///
    /// Memory: 12 to 40 bytes for each content that several entries name.
    ///
    /// - Complexity: O(*n*) in the number of evicted candidates.
    init(_ candidates: some Sequence<SeenEntry>, marks: ContentMarks, excess: Excess) {
        var excess = excess
        // The number of evicted entries, for each content that several entries name.
        var gone: [UInt64: Int] = [:]
        for entry in candidates {
            guard let reason = excess.reason else { return }
            if parts.last?.reason != reason { parts.append((reason, 0)) }
            parts[parts.count - 1].count += 1
            var bytes = entry.allocatedSize.bytes
            // Content that several keys share keeps its space until the last of them is evicted.
            if let mark = marks.value(of: entry.content), mark.presence == .present {
                var count = 1
                if mark.references > 1 {
                    gone[marks.fingerprint(of: entry.content), default: 0] += 1
                    count = gone[marks.fingerprint(of: entry.content)] ?? 1
                }
                if count == mark.references, mark.references < ContentMark.mostReferences {
                    bytes += mark.allocatedSize.bytes
                }
            }
            excess.subtract(bytes: bytes)
        }
    }
}
