// SPDX-License-Identifier: Apache-2.0

import DiskCache

/// How far long work is, in one line: how much of it is done, how fast it goes, and how long it will take.
///
/// A pure function of what it is told and when.
struct ProgressText {
    /// When the phase under way was first heard of, and how far it was then.
    private var begin:
        (phase: CacheProgress.Phase, instant: ContinuousClock.Instant, progress: CacheProgress)?

    /// What is told before so much time has passed is no guide to what will follow.
    private static let shortest: Duration = .seconds(1)

    /// Takes down when a phase begins.
    mutating func hear(_ progress: CacheProgress, at now: ContinuousClock.Instant) {
        if begin?.phase != progress.phase { begin = (progress.phase, now, progress) }
    }

    /// The line for `progress`, heard at `now`.
    func line(_ progress: CacheProgress, at now: ContinuousClock.Instant) -> String {
        guard let begin, begin.phase == progress.phase else { return Self.head(progress) }
        let elapsed = now - begin.instant
        guard elapsed >= Self.shortest else { return Self.head(progress) }
        let first = begin.progress
        var parts = [Self.head(progress)]
        if let items = progress.items {
            let rate = Double(items - (first.items ?? 0)) / elapsed.inSeconds
            parts.append("\(Quantity.grouped(Int(saturating: rate)))/s")
        }
        if let bytes = progress.bytes {
            let rate = Double(bytes - (first.bytes ?? 0)) / elapsed.inSeconds
            parts.append("\(Quantity.text(bytes: Int64(Int(saturating: rate))))/s")
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
