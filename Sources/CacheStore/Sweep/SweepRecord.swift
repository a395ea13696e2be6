// SPDX-License-Identifier: Apache-2.0

package import Platform

/// The result of the last sweep of any process, as recorded in the file of the `janitor` lock.
///
/// Written under that lock when a sweep begins and when it ends. A record of a running sweep belongs to a killed process if
/// no process holds the lock. Times are the system clock's. As text:
///
/// ```
/// sweep 1
/// process 1234
/// began 1700000000000000000
/// ended 1700000001000000000     (missing: it is running, or was killed)
/// busy 90000000
/// scope full                    (or: expired)
/// complete yes
/// full 1700000000000000000      (when the last complete full sweep began)
/// cost 90000000                 (the work that it took, ns)
/// removed expired 12 49152      (reason, count, bytes)
/// entries 100 0
/// objects 90 368640
/// horizon 3600000000000         (idle time of the most recently used evicted entry, ns; missing: none was evicted)
/// drift -2 8192                 (counted usage minus actual usage; missing: it was not counted)
/// end
/// ```
package struct SweepRecord: Sendable, Equatable {
    package var process: Int32 = 0
    package var began = Timestamp.distantPast
    /// nil if the sweep is still running or its process was killed.
    package var ended: Timestamp?
    /// Whether the sweep was limited to expired entries and leftovers.
    package var expiredOnly = false
    /// Whether the sweep was limited to a selection of entries; not in the file.
    private var isSelective = false
    /// The last complete sweep that was limited neither to expired entries nor to a selection; nil if there was none.
    package var lastFull: FullSweep?
    /// The report, of which the file has only the fields listed above.
    ///
    /// It is incomplete until the sweep has ended.
    package var report = CollectionReport()

    /// A complete sweep that checked everything.
    package struct FullSweep: Sendable, Equatable {
        package var began: Timestamp
        package var busy: Duration = .zero
    }

    /// Creates the record of a sweep of this process that begins now.
    init(beginning request: SweepRequest, after last: SweepRecord?) {
        self.init()
        process = CurrentProcess.identifier
        began = .now
        expiredOnly = request.expiredOnly
        isSelective = request.selection != .all
        lastFull = last?.lastFull
    }

    private init() {
        report.isComplete = false
    }

    mutating func end(_ report: CollectionReport) {
        ended = .now
        self.report = report
        if report.isComplete && !expiredOnly && !isSelective {
            lastFull = FullSweep(began: began, busy: report.worked)
        }
    }

    /// Whether the sweep left work undone: it ran out of time, was killed, or is still running.
    package var isUnfinished: Bool { ended == nil || !report.isComplete }

    // MARK: File

    /// The length of every record in bytes, so that one record replaces another in a single write.
    ///
    /// The longest text has about 1200 bytes.
    private static let length = 2048

    /// Writes the record; two system calls (`lseek`, `write`).
    ///
    /// If the write fails, the sweep continues: the first record of a directory can't be written to a full disk, and then
    /// a sweep is needed most. The next sweep comes all the sooner.
    func write(to file: borrowing FileDescriptor) {
        bestEffort { () throws(Errno) in
            try file.rewind()
            try file.writeAll([UInt8](text, filledTo: Self.length).span)
        }
    }

    /// Returns the record in an open file; nil if it is missing or incomplete.
    static func read(from file: borrowing FileDescriptor) -> SweepRecord? {
        // Reads no more than one record, because another program may have appended to the file.
        let bytes = bestEffort { () throws(Errno) in try file.read(length) }
        return bytes.flatMap { SweepRecord(text: String(decoding: $0, as: UTF8.self)) }
    }

    // MARK: Text

    /// A line of the text: its name, a function that returns its numbers or nil to omit the line, and a function that
    /// reads the numbers.
    private typealias Field = (
        name: String,
        numbers: @Sendable (SweepRecord) -> [Int64]?,
        read: @Sendable (inout SweepRecord, [Int64]) -> Void
    )

    /// The words for 0 and 1 in some fields.
    private static let words = ["scope": ["full", "expired"], "complete": ["no", "yes"]]

    private static let ownFields: [Field] = [
        ("process", { [Int64($0.process)] }, { $0.process = Int32(exactly: $1[0]) ?? 0 }),
        ("began", { [$0.began.nanoseconds] }, { $0.began = time($1) }),
        ("ended", { $0.ended.map { [$0.nanoseconds] } }, { $0.ended = time($1) }),
        ("busy", { [$0.report.worked.saturatingNanoseconds] }, { $0.report.worked = span($1) }),
        ("scope", { [$0.expiredOnly ? 1 : 0] }, { $0.expiredOnly = $1[0] == 1 }),
        ("complete", { [$0.report.isComplete ? 1 : 0] }, { $0.report.isComplete = $1[0] == 1 }),
        (
            "full", { $0.lastFull.map { [$0.began.nanoseconds] } },
            { $0.lastFull = FullSweep(began: time($1)) }
        ),
        ("cost", { $0.lastFull.map { [$0.busy.saturatingNanoseconds] } }, { $0.lastFull?.busy = span($1) }),
    ]

    private static func removed(_ reason: RemovalReason) -> Field {
        (
            "removed \(reason.rawValue)", { $0.report.removed[reason]?.numbers },
            { $0.report.removed[reason] = tally($1) }
        )
    }

    private static let laterFields: [Field] = [
        ("entries", { $0.report.entries.numbers }, { $0.report.entries = tally($1) }),
        ("objects", { $0.report.objects.numbers }, { $0.report.objects = tally($1) }),
        (
            "horizon", { $0.report.evictionAge.map { [$0.saturatingNanoseconds] } },
            { $0.report.evictionAge = span($1) }
        ),
        ("drift", { $0.report.drift?.numbers }, { $0.report.drift = tally($1) }),
    ]

    private static let fields = ownFields + RemovalReason.allCases.map(removed) + laterFields

    private static func time(_ numbers: [Int64]) -> Timestamp { Timestamp(nanoseconds: numbers[0]) }

    private static func span(_ numbers: [Int64]) -> Duration { .nanoseconds(max(0, numbers[0])) }

    private static func tally(_ numbers: [Int64]) -> CollectionReport.Tally {
        let bytes = numbers.count > 1 ? numbers[1].plausible : 0
        return CollectionReport.Tally(count: Int(numbers[0].plausible), bytes: bytes)
    }

    var text: String {
        var lines = ["sweep 1"]
        for field in Self.fields {
            guard let numbers = field.numbers(self) else { continue }
            let words = numbers.map { Self.words[field.name]?[Int($0)] ?? "\($0)" }
            lines.append(([field.name] + words).joined(separator: " "))
        }
        return (lines + ["end"]).joined(separator: "\n") + "\n"
    }

    /// Reads the output of ``text``, and ignores lines that a later version may add; returns nil for any other text.
    ///
    /// Any process that can write the file can write any number into it, so every number is replaced by a valid one.
    init?(text: String) {
        var lines = text.split(whereSeparator: \.isNewline).map { $0.split(separator: " ").map(String.init) }
        lines.removeAll { $0.isEmpty }
        guard lines.first == ["sweep", "1"], lines.last == ["end"] else { return nil }
        self.init()
        for field in Self.fields {
            let name = field.name.split(separator: " ").map(String.init)
            guard let line = lines.last(where: { $0.starts(with: name) }) else { continue }
            let words = Self.words[field.name]
            let numbers = line[name.count...].map { word in
                words.map { $0.firstIndex(of: word).map(Int64.init) } ?? Int64(word)
            }
            // A line whose first number is invalid counts as missing.
            if let first = numbers.first, first != nil { field.read(&self, numbers.map { $0 ?? 0 }) }
        }
        guard began != .distantPast else { return nil }
    }

    // MARK: The last one

    /// Returns the record of the running sweep, or of the last one; nil if there is none.
    ///
    /// Takes no lock. About six system calls.
    package static func last(in directory: StoreDirectory) -> SweepRecord? {
        // A file that is missing or unreadable is treated as an empty one.
        let record = bestEffort { () throws(Errno) in
            read(from: try directory.locks.open(StoreLayout.janitorLock, .readOnly))
        }
        return record ?? nil
    }

    /// Returns when the record was last written; while this time is unchanged, ``last(in:)`` returns the same record.
    ///
    /// One system call; nil if the file's status can't be read.
    package static func lastNote(in directory: StoreDirectory) -> Timestamp? {
        // A caller that gets nil reads the record instead.
        bestEffort { () throws(Errno) in try directory.locks.status(of: StoreLayout.janitorLock).modified }
    }
}

extension CollectionReport.Tally {
    fileprivate var numbers: [Int64] { [Int64(count), bytes] }
}
