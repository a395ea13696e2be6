// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// `diskcache stats --watch`: prints the counts at intervals, until a signal arrives.
enum StatsWatch {
    /// Prints the counts until a signal arrives; the process then ends by that signal.
    static func run(_ arguments: Arguments, every interval: Duration) throws -> Never {
        // A separate thread receives the signal, so that the process never ends in the middle of a line.
        let stop = try doing("receive signals") { () throws(Errno) in
            try StopSignal([.hangup, .interrupt, .terminate])
        }
        let isJSON = arguments.has("json")
        let isScreen = !isJSON && Terminal.isInteractive(Terminal.standardOutput)
        // Opened only once, because it has a sending thread.
        let sharing = try arguments.requireCache(sharing: true)
        var before = try StatsReading(of: sharing)
        if isScreen {
            // Erases the whole screen (ECMA-48 ED).
            try draw(before, nil, "\u{1B}[2J")
        } else if !isJSON {
            try Output.print(StatsLine.heading)
        }
        var due = before.instant
        while true {
            // Counted from the previous due time, so that delays do not accumulate.
            due = max(due + interval, .now)
            if let signal = stop.wait(until: due) { CurrentProcess.end(like: signal) }
            // Reopened each time, because the directory or its control file may have been replaced.
            let reading = try StatsReading(of: arguments.requireCache(), sharing: sharing)
            let elapsed = max((reading.instant - before.instant).inSeconds, 0.001)
            let activity = reading.totals.activity.since(before.totals.activity)
            let done = StatsInterval(activity: activity, seconds: elapsed)
            if isScreen {
                try draw(reading, done)
            } else {
                let line = StatsLine.text(reading.totals, done, now: .now)
                try arguments.print(line, json: json(reading, done))
            }
            before = reading
        }
    }

    // MARK: Output

    private static func json(_ reading: StatsReading, _ interval: StatsInterval) -> JSON.Object {
        reading.json([
            "time": Date.now, "seconds": (interval.seconds * 1000).rounded() / 1000,
            "hitRatio": interval.activity.hitRatio, "perSecond": interval.perSecond,
        ])
    }

    /// Overwrites the previous output, which avoids flicker.
    ///
    /// Moves to the first column of the first line (CUP), erases the rest of each line (EL), and then everything below
    /// (ED).
    private static func draw(_ reading: StatsReading, _ done: StatsInterval?, _ start: String = "") throws {
        let text = StatsText.counts(reading, now: .now, done)
        let screen = screen(text, Terminal.size(Terminal.standardOutput))
        try Output.draw(start + screen, to: Terminal.standardOutput)
    }

    /// Returns the part of a text that fits on the screen.
    ///
    /// A longer line would wrap, and further lines would scroll the first line away.
    static func screen(_ text: String, _ size: Terminal.Size?) -> String {
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        // The cursor occupies another line.
        if let size { lines = lines.prefix(size.rows - 1) }
        let fitted = lines.map { String($0).singleLine.fitted(to: size?.columns) }
        return "\u{1B}[H" + fitted.map { "\($0)\u{1B}[K\n" }.joined() + "\u{1B}[J"
    }
}

/// One interval as a line of plain numbers, which both users and awk can read.
enum StatsLine {
    private static let names = [
        "TIME", "HITS/S", "MISSES/S", "HIT%", "PUTS/S", "REMOVALS/S", "READ/S", "WRITTEN/S", "COMPUTED/S",
        "WAITS/S", "COLLECTED/S", "KEYS", "BYTES",
    ]
    private static let widths = [20, 9, 9, 5, 9, 10, 11, 11, 10, 9, 11, 9, 13]
    private static let columns = [Table.Alignment.left] + Array(repeating: .right, count: names.count - 1)

    static var heading: String { Table.line(names, columns, widths: widths) }

    static func text(_ totals: CacheStatistics.Totals, _ interval: StatsInterval, now: Date) -> String {
        let usage = totals.usage
        let rates = interval.perSecond
        func rate(_ name: String) -> String { number(rates[name, default: 0]) }
        let ratio = interval.activity.hitRatio.map { number(($0 * 1000).rounded(.down) / 10) } ?? "-"
        let cells =
            [now.formatted(.iso8601), rate("hits"), rate("misses"), ratio, rate("puts"), rate("removals")]
            + ["bytesRead", "bytesWritten"].map { number(rates[$0, default: 0].rounded()) }
            + [rate("computations"), rate("waits"), rate("collected")]
            + (usage.isCounted ? ["\(usage.entries)", "\(usage.bytes)"] : ["-", "-"])
        return Table.line(cells, columns, widths: widths)
    }

    /// Returns a number with one decimal place unless it is whole.
    private static func number(_ value: Double) -> String {
        let text = Quantity.tenths(value)
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
