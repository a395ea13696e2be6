// SPDX-License-Identifier: Apache-2.0

import DiskCacheCommand
import DiskCacheHTTP
import Platform

/// The progress of several downloads, on a line of the terminal.
final class FetchLine: Sendable {
    let line = ProgressLine()
    private let text: Locked<FetchProgressText>

    init(_ requests: [FetchRequest]) {
        text = Locked(FetchProgressText(names: requests.map { FetchText.place($0.url) }))
    }

    /// Shows the progress of the download at an index.
    func hear(_ progress: FetchProgress, of index: Int) {
        let now = ContinuousClock.now
        let words = text.withLock { text in
            text.hear(progress, of: index, at: now)
            return text.line(at: now)
        }
        line.show(words)
    }

    func end(_ index: Int) {
        text.withLock { $0.end(index) }
    }
}

/// The text of a ``FetchLine``: the progress, the rate, and the estimated time left.
///
/// It depends only on the reports and their times.
struct FetchProgressText {
    private let names: [String]
    /// The active downloads, by their index.
    private var present: [Int: FetchProgress] = [:]
    private var ended = 0
    /// The number of bytes received since the first report; ``begin`` is the time of that report.
    private var received: Int64 = 0
    private var begin: ContinuousClock.Instant?

    /// The shortest time for which a rate is shown; a rate over less time predicts nothing.
    private static let shortest: Duration = .seconds(1)

    /// Creates the text.
    ///
    /// - Parameter names: The names of the downloads.
    init(names: [String]) {
        self.names = names
    }

    mutating func hear(_ progress: FetchProgress, of index: Int, at now: ContinuousClock.Instant) {
        if begin == nil { begin = now }
        // The first report may include bytes of an earlier attempt, which were not received now.
        if let before = present[index] { received += max(0, progress.received - before.received) }
        present[index] = progress
    }

    mutating func end(_ index: Int) {
        present[index] = nil
        ended += 1
    }

    /// Returns "https://example.org/a: 42 %, 12.0 MiB, 3.0 MiB/s, 5s left".
    ///
    /// For several downloads it returns "3 of 10 URLs: 12.0 MiB, 3.0 MiB/s".
    func line(at now: ContinuousClock.Instant) -> String {
        let there = present.values.reduce(0) { $0 + $1.received }
        var parts: [String] = []
        var left: Int64?
        if names.count == 1, let only = present[0] {
            if let process = only.joinedProcess { parts.append("process \(process) is fetching it") }
            if let total = only.total, total > 0 {
                parts.append("\(min(100, Int(Double(only.received) / Double(total) * 100))) %")
                left = max(0, total - only.received)
            }
        }
        parts.append(Quantity.text(bytes: names.count == 1 ? there : received))
        let elapsed = begin.map { now - $0 } ?? .zero
        if elapsed >= Self.shortest {
            let rate = Double(received) / elapsed.inSeconds
            parts.append("\(Quantity.text(bytes: Int64(Int(saturating: rate))))/s")
            if let left, rate > 0 {
                let seconds = min(Double(left) / rate, 1e9)
                parts.append("\(Quantity.text(Duration.seconds(seconds))) left")
            }
        }
        let head = names.count == 1 ? names[0] : "\(ended) of \(names.count) URLs"
        return "\(head): " + parts.joined(separator: ", ")
    }
}
