// SPDX-License-Identifier: Apache-2.0

/// Which of the candidates to evict: a pure function of what was seen and what has to go.
///
/// They go in the order in which they are given, the least recently used first, until the limits hold: so it is so
/// many of them for each reason, one reason after the other.
struct SweepPlan: Sendable {
    /// How many go for a reason.
    private(set) var parts: [(reason: RemovalReason, count: Int)] = []

    var count: Int { parts.reduce(0) { $0 + $1.count } }

    /// Memory: 12 to 40 bytes for each content that several entries name.
    ///
    /// - Complexity: O(*n*) in the candidates that go.
    init(_ candidates: some Sequence<SeenEntry>, marks: ContentMarks, excess: Excess) {
        var excess = excess
        // Of contents that several entries name: how many of those go.
        var gone: [UInt64: Int] = [:]
        for entry in candidates {
            guard let reason = excess.reason else { return }
            if parts.last?.reason != reason { parts.append((reason, 0)) }
            parts[parts.count - 1].count += 1
            var bytes = entry.allocatedSize.bytes
            // Content that several keys share takes its space until the last of them goes.
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
