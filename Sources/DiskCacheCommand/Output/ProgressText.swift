// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// The text of a progress line: the progress, the rate, and the estimated time left.
///
/// It depends only on the reports and their times.
struct ProgressText {
    /// The time and the progress in the current phase's first report.
    private var begin: (instant: ContinuousClock.Instant, progress: CacheProgress)?

    /// The shortest time for which a rate is shown; a rate over less time predicts nothing.
    private static let shortest: Duration = .seconds(1)

    /// Records the beginning of a phase.
    mutating func hear(_ progress: CacheProgress, at now: ContinuousClock.Instant) {
        if begin?.progress.phase != progress.phase { begin = (now, progress) }
    }

    /// Returns the line for `progress`, reported at `now`.
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

    /// Returns "scanning: 42 %" or "deleting: 42 %, 1 234".
    private static func head(_ progress: CacheProgress) -> String {
        let percent = progress.total > 0 ? min(100, progress.done * 100 / progress.total) : 0
        let items = progress.items.map { ", " + Quantity.grouped($0) } ?? ""
        return "\(progress.phase.rawValue): \(percent) %\(items)"
    }
}
