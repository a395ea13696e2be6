// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// A line on standard error that shows the progress of long work, if that is a terminal.
package final class ProgressLine: Sendable {
    /// The update interval; ten times a second is as fast as a user can read.
    ///
    /// It also delays the first line, so that short work shows none.
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
        // Unconditionally, because it must register the beginning of each phase.
        text.withLock { $0.hear(progress, at: now) }
        if isDue(now) { write("diskcache: \(text.withLock { $0.line(progress, at: now) })") }
    }

    /// Writes a line to standard output, above this one if both are on the same terminal.
    func print(_ text: String, painting words: [(word: String, colour: Colour)] = []) throws(Errno) {
        clear()
        try Output.print(text + "\n", painting: words)
    }

    /// Updates the line with any text, if an update is due.
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
        // After the last column some terminals begin a new line, and the previous line can't be erased any more.
        let columns = Terminal.size(Terminal.standardError).map { $0.columns - 1 }
        // Return to the first column, and erase to the end of the line (ECMA-48 EL).
        let line = text.singleLine.fitted(to: columns)
        // The work continues even if its progress can't be shown.
        try? Output.draw("\r\u{1B}[K\(line)", to: Terminal.standardError)
    }
}
