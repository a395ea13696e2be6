// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// One line on standard error that says how far long work is, where a person looks at it.
final class ProgressLine: Sendable {
    /// Ten times a second is as smooth as reading gets; the first line comes after as long, so that short
    /// work stays silent.
    private static let interval: Duration = .milliseconds(100)

    private let isShown = Terminal.isInteractive(Terminal.standardError)
    private let next = Locked(ContinuousClock.now + ProgressLine.interval)
    private let text = Locked(ProgressText())

    /// Runs `body`, and takes the line away when it is through.
    static func during<Value, Failure: Error>(
        _ body: (ProgressLine) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        let line = ProgressLine()
        defer { line.clear() }
        return try body(line)
    }

    /// Takes the line away.
    func clear() {
        write("")
    }

    /// Rewrites the line, if it is time to.
    func show(_ progress: CacheProgress) {
        guard isShown else { return }
        let now = ContinuousClock.now
        // Always, as it is to hear of the beginning of each phase.
        text.withLock { $0.hear(progress, at: now) }
        if isDue(now) { write("diskcache: \(text.withLock { $0.line(progress, at: now) })") }
    }

    /// Writes a line to standard output, above this one where both are on the same terminal.
    func print(_ text: String) throws(Errno) {
        clear()
        try Output.print(text + "\n")
    }

    /// Rewrites the line with any text, if it is time to.
    func show(_ text: String) {
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
        // In the last column some terminals begin a new line, and what is there can't be erased any more.
        let columns = Terminal.size(Terminal.standardError).map { $0.columns - 1 }
        // Back to the first column, and erase to the end of the line (ECMA-48 EL).
        let line = text.singleLine.fitted(to: columns)
        // The work goes on without somebody who watches it.
        try? Output.draw("\r\u{1B}[K\(line)", to: Terminal.standardError)
    }
}
