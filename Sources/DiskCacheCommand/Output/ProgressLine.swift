// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// A line that shows the progress of long work on standard error, if that is a terminal.
package final class ProgressLine: Sendable {
    /// The interval between updates; users can't read faster than ten times a second.
    ///
    /// The first line appears after this interval, so that short work shows none.
    private static let interval: Duration = .milliseconds(100)

    /// Whether standard error is a terminal.
    package let isShown = Terminal.isInteractive(Terminal.standardError)
    private let next = Locked(ContinuousClock.now + ProgressLine.interval)
    private let text = Locked(ProgressText())

    package init() {}

    /// Runs `body` and then erases the line.
    package static func during<Value>(_ body: (ProgressLine) throws -> Value) rethrows -> Value {
        let line = ProgressLine()
        defer { line.clear() }
        return try body(line)
    }

    /// Erases the line.
    package func clear() {
        write("")
    }

    /// Updates the line, if an update is due.
    func show(_ progress: CacheProgress) {
        guard isShown else { return }
        let now = ContinuousClock.now
        // Even if no update is due, because the text must register the start of each phase.
        text.withLock { $0.hear(progress, at: now) }
        if isDue(now) { write("diskcache: \(text.withLock { $0.line(progress, at: now) })") }
    }

    /// Writes a line to standard output; if both are on the same terminal, it appears above the progress line.
    func print(_ text: String, painting words: [(word: String, colour: Colour)] = []) throws(Errno) {
        clear()
        try Output.print(text + "\n", painting: words)
    }

    /// Updates the line with other text, if an update is due.
    package func show(_ text: String) {
        if isShown, isDue(.now) { write("diskcache: \(text)") }
    }

    private func isDue(_ now: ContinuousClock.Instant) -> Bool {
        next.withLock { next in
            if now < next { return false }
            next = now + Self.interval
            return true
        }
    }

    private func write(_ text: String) {
        guard isShown else { return }
        // Some terminals wrap after the last column, and then the previous line can't be erased.
        let columns = Terminal.size(Terminal.standardError).map { $0.columns - 1 }
        // Moves to the first column, and erases to the end of the line (ECMA-48 EL).
        let line = text.singleLine.fitted(to: columns)
        // If progress can't be shown, the work continues.
        try? Output.draw("\r\u{1B}[K\(line)", to: Terminal.standardError)
    }
}
