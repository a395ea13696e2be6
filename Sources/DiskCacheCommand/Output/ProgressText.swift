// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// The text of a progress line: how much is done, how fast it goes, and how long the rest will take.
///
/// A pure function of what it hears and when.
struct ProgressText {
    /// When the current phase was first heard of, and its progress then.
    private var begin: (instant: ContinuousClock.Instant, progress: CacheProgress)?

    /// A rate over less time than this says nothing about what will follow.
    private static let shortest: Duration = .seconds(1)

    /// Notes when a phase begins.
    mutating func hear(_ progress: CacheProgress, at now: ContinuousClock.Instant) {
        if begin?.progress.phase != progress.phase { begin = (now, progress) }
    }

    /// The line for `progress`, heard at `now`.
    func line(_ progress: CacheProgress, at now: ContinuousClock.Instant) -> String {
        guard let begin, begin.progress.phase == progress.phase else { return Self.head(progress) }
        let elapsed = now - begin.instant
        guard elapsed >= Self.shortest else { return Self.head(progress) }
        func rate(_ growth: some BinaryInteger) -> Int { Int(saturating: Double(growth) / elapsed.inSeconds) }
        let first = begin.progress
        var parts = [Self.head(progress)]
        if let items = progress.items {
            parts.append("\(Quantity.grouped(rate(items - (first.items ?? 0))))/s")
        }
        if let bytes = progress.bytes {
            parts.append("\(Quantity.text(bytes: Int64(rate(bytes - (first.bytes ?? 0)))))/s")
        }
        let done = progress.done - first.done
        if done > 0 {
            let left = elapsed / Double(done) * Double(max(0, progress.total - progress.done))
            parts.append("\(Quantity.text(left)) left")
        }
        return parts.joined(separator: ", ")
    }

    /// "scanning: 42 %", "deleting: 42 %, 1 234".
    private static func head(_ progress: CacheProgress) -> String {
        let percent = progress.total > 0 ? min(100, progress.done * 100 / progress.total) : 0
        let items = progress.items.map { ", " + Quantity.grouped($0) } ?? ""
        return "\(progress.phase.rawValue): \(percent) %\(items)"
    }
}
