// SPDX-License-Identifier: Apache-2.0

package import Platform

/// What the last sweep of any process did, as the file of the `janitor` lock tells all of them.
///
/// Written under that lock when a sweep begins and when it ends; a record of one that runs while nobody
/// holds the lock is that of a killed process. Times are the system clock's. As text:
///
/// ```
/// sweep 1
/// process 1234
/// began 1700000000000000000
/// ended 1700000001000000000     (missing: it runs, or was killed)
/// busy 90000000
/// scope full                    (or: expired)
/// complete yes
/// full 1700000000000000000      (when the last complete full sweep began)
/// cost 90000000                 (the work that it took, ns)
/// removed expired 12 49152      (reason, count, bytes)
/// entries 100 0
/// objects 90 368640
/// horizon 3600000000000         (how long the last one evicted had not been used, ns; missing: none was)
/// drift -2 8192                 (by how much the usage added up was too high; missing: it was not counted)
/// end
/// ```
package struct SweepRecord: Sendable, Equatable {
    package var process: Int32
    package var began: Timestamp
    /// nil: the sweep is under way, or its process was killed.
    package var ended: Timestamp?
    /// The time that it worked, without its rests.
    package var busy: Duration = .zero
    /// Whether it looked only for expired entries and leftovers.
    package var expiredOnly = false
    /// Whether it came to its end.
    package var isComplete = false
    /// When the last complete sweep began that was not limited to expired entries, and the work it took; nil:
    /// there was none.
    package var lastFull: FullSweep?
    package var removed: [SweepReason: SweepTally] = [:]
    package var entries = SweepTally()
    package var objects = SweepTally()
    /// By how much the usage in the control file was too high before, negative: too low; nil: it was not
    /// counted.
    package var drift: SweepTally?
    /// For how long the most recently used entry that was evicted for want of room had not been used; nil where none
    /// was.
    package var horizon: Duration?

    /// A complete sweep that looked at everything.
    package struct FullSweep: Sendable, Equatable {
        package var began: Timestamp
        package var busy: Duration
    }

    /// A sweep of this process that begins now.
    init(beginning request: SweepRequest, after last: SweepRecord?) {
        process = CurrentProcess.identifier
        began = .now
        expiredOnly = request.expiredOnly
        lastFull = last?.lastFull
    }

    private init() {
        process = 0
        began = .distantPast
    }

    mutating func end(_ report: SweepReport) {
        ended = .now
        busy = report.busy
        isComplete = report.isComplete
        removed = report.removed
        entries = report.entries
        objects = report.objects
        drift = report.drift
        horizon = report.horizon
        if isComplete && !expiredOnly { lastFull = FullSweep(began: began, busy: busy) }
    }

    /// Whether it left work behind: it ran out of time, or was killed, or is still under way.
    package var isUnfinished: Bool { ended == nil || !isComplete }

    // MARK: File

    /// Every record takes as many bytes, so that one replaces another in a single write.
    ///
    /// The longest has about 1200.
    private static let length = 2048

    /// One system call.
    ///
    /// Where it fails, on a full disk at the first time, the sweep goes on, for then it is needed most; the
    /// next one comes the sooner for it.
    func write(to file: borrowing FileDescriptor) {
        bestEffort { () throws(Errno) in
            var bytes = Array(text.utf8.prefix(Self.length - 1))
            bytes += repeatElement(UInt8(ascii: " "), count: Self.length - 1 - bytes.count)
            bytes.append(UInt8(ascii: "\n"))
            try file.rewind()
            try file.writeAll(bytes.span)
        }
    }

    /// The record in an open file; nil where there is none, or half of one.
    static func read(from file: borrowing FileDescriptor) -> SweepRecord? {
        var bytes: [UInt8]?
        bestEffort { () throws(Errno) in
            // No more than a record: whatever somebody has put behind it, this one counts.
            bytes = try file.read(length)
        }
        return bytes.flatMap { SweepRecord(text: String(decoding: $0, as: UTF8.self)) }
    }

    var text: String {
        var lines = ["sweep 1", "process \(process)", "began \(began.nanoseconds)"]
        if let ended { lines.append("ended \(ended.nanoseconds)") }
        lines += [
            "busy \(busy.saturatingNanoseconds)", "scope \(expiredOnly ? "expired" : "full")",
            "complete \(isComplete ? "yes" : "no")",
        ]
        if let lastFull {
            lines.append("full \(lastFull.began.nanoseconds)")
            lines.append("cost \(lastFull.busy.saturatingNanoseconds)")
        }
        for reason in SweepReason.allCases {
            guard let tally = removed[reason] else { continue }
            lines.append("removed \(reason.rawValue) \(tally.count) \(tally.bytes)")
        }
        lines.append("entries \(entries.count) \(entries.bytes)")
        lines.append("objects \(objects.count) \(objects.bytes)")
        if let horizon { lines.append("horizon \(horizon.saturatingNanoseconds)") }
        if let drift { lines.append("drift \(drift.count) \(drift.bytes)") }
        return lines.joined(separator: "\n") + "\nend\n"
    }

    /// Reads what ``text`` wrote; nil for anything else, but for lines that a later version may add.
    ///
    /// Whoever can write the file can write any number: each is taken as the next that can be.
    init?(text: String) {
        var lines = text.split(whereSeparator: \.isNewline).map { $0.split(separator: " ").map(String.init) }
        lines.removeAll { $0.isEmpty }
        guard lines.first == ["sweep", "1"], lines.last == ["end"] else { return nil }
        self.init()
        var hasBegan = false
        for words in lines {
            guard words.count >= 2 else { continue }
            let number = Int64(words[1])
            switch words[0] {
            case "process": process = number.flatMap { Int32(exactly: $0) } ?? 0
            case "began":
                guard let number else { return nil }
                began = Timestamp(nanoseconds: number)
                hasBegan = true
            case "ended": ended = number.map { Timestamp(nanoseconds: $0) }
            case "busy": busy = Self.span(number)
            case "scope": expiredOnly = words[1] == "expired"
            case "complete": isComplete = words[1] == "yes"
            case "full":
                lastFull = number.map { FullSweep(began: Timestamp(nanoseconds: $0), busy: .zero) }
            case "cost": lastFull?.busy = Self.span(number)
            case "removed":
                if let reason = SweepReason(rawValue: words[1]) {
                    removed[reason] = Self.tally(words.dropFirst(2))
                }
            case "entries": entries = Self.tally(words.dropFirst())
            case "objects": objects = Self.tally(words.dropFirst())
            case "horizon": horizon = Self.span(number)
            case "drift": drift = Self.tally(words.dropFirst())
            default: continue
            }
        }
        guard hasBegan else { return nil }
    }

    private static func tally(_ words: ArraySlice<String>) -> SweepTally {
        var tally = SweepTally()
        tally.count = Int((words.first.flatMap { Int64($0) } ?? 0).plausible)
        tally.bytes = (words.dropFirst().first.flatMap { Int64($0) } ?? 0).plausible
        return tally
    }

    private static func span(_ number: Int64?) -> Duration { .nanoseconds(max(0, number ?? 0)) }
}

extension Store {
    /// What the last sweep did, or the one that is under way has said so far; nil: there was none, or it
    /// left no word.
    ///
    /// Takes no lock. About six system calls.
    package func lastSweep() -> SweepRecord? {
        var record: SweepRecord?
        // A file that is gone or can't be read tells as little as an empty one.
        bestEffort { () throws(Errno) in
            record = SweepRecord.read(
                from: try directory.locks.open(StoreLayout.janitorLock, .readOnly)
            )
        }
        return record
    }

    /// When anything was last written about sweeps: unchanged, ``lastSweep()`` says the same as before.
    ///
    /// One system call; nil where the file can't be looked at.
    package func lastSweepNote() -> Timestamp? {
        var changed: Timestamp?
        // Whoever can't look reads the record instead.
        bestEffort { () throws(Errno) in
            changed = try directory.locks.status(of: StoreLayout.janitorLock).modified
        }
        return changed
    }
}
