// SPDX-License-Identifier: Apache-2.0

import Platform

/// The progress of several downloads, on a line of the terminal.
final class FetchLine: Sendable {
    let line = ProgressLine()
    private let text: Locked<FetchProgressText>

    init(_ orders: [FetchOrder]) {
        text = Locked(FetchProgressText(names: orders.map { FetchText.place($0.url) }))
    }

    /// Shows how far the download at a place is.
    func hear(_ progress: DownloadProgress, of index: Int) {
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

/// The text of that line: how much is there, how fast it comes, and how long the rest will take.
///
/// A pure function of what it hears and when.
struct FetchProgressText {
    private let names: [String]
    /// Those that are under way, by their places.
    private var present: [Int: DownloadProgress] = [:]
    private var ended = 0
    /// Bytes that have come since it was first heard, in all, and when that was.
    private var received: Int64 = 0
    private var begin: ContinuousClock.Instant?

    /// A rate over less time than this says nothing about what will follow.
    private static let shortest: Duration = .seconds(1)

    /// - Parameter names: of the downloads.
    init(names: [String]) {
        self.names = names
    }

    mutating func hear(_ progress: DownloadProgress, of index: Int, at now: ContinuousClock.Instant) {
        if begin == nil { begin = now }
        // What was there before it began, of an earlier attempt, did not come now.
        if let before = present[index] { received += max(0, progress.received - before.received) }
        present[index] = progress
    }

    mutating func end(_ index: Int) {
        present[index] = nil
        ended += 1
    }

    /// "https://example.org/a: 42 %, 12.0 MiB, 3.0 MiB/s, 5s left"; of several "3 of 10 URLs: 12.0 MiB, 3.0
    /// MiB/s".
    func line(at now: ContinuousClock.Instant) -> String {
        let there = present.values.reduce(0) { $0 + $1.received }
        var parts: [String] = []
        var left: Int64?
        if names.count == 1, let only = present[0] {
            if let process = only.process { parts.append("process \(process) fetches it") }
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
