// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// `diskcache ls`.
enum ListCommand: Command {
    static let name = "ls"
    static let operands = ""
    static let summary = "list keys, one a line"
    static let options = [
        Option("long", "l", help: "with size, age, time since the last access and time left"),
        Option(
            "sort",
            nil,
            "ORDER",
            choices: Order.allCases.map(\.rawValue),
            help: "by key, size, age, access or expires"
        ),
        Option("reverse", "r", help: "the other way round; needs --sort"),
        Option("limit", "n", "COUNT", help: "only the first so many"),
        Option("null", "0", help: "raw keys, each with a NUL behind it, as xargs -0 reads them"),
        .json,
    ]
    static let details = """
        Orders: by key as bytes; the largest, the oldest, the least recently used, the soonest to expire
        first. Without --sort keys come in no order, as they are read, in constant memory. With it, what does
        not fit 32 MiB is sorted by way of a file without a name in $TMPDIR, else /tmp; with --limit only where
        the first so many do not fit.

        A key's control characters and backslashes are written as in C (\\n, \\t, \\r, \\\\, \\x1b), except with
        --null. A key that is not kept (longer than 1 KiB, or by the user's wish) is shown as sha256: and
        its digest. --null leaves such a key out, and one that contains a NUL, and says on standard error
        how many there were. Expired values are left out. Where keys become arguments of
        a command, put -- before them: a key may look like an option.

        JSON: one object a line, as in `diskcache info`, without the paths.

        Exit status: 0 done, also where nothing is there; 64 usage; 73 DIR is no directory; 74 or 77 a part
        could not be read; 78 there is no cache.

        Examples:
          diskcache ls --long --sort size --limit 10
          diskcache ls --null | xargs -0 diskcache rm --
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        try arguments.expectOperands(0...0, "no KEY")
        let style = try Style(arguments)
        let order = try arguments.value("sort", as: self.order)
        if order == nil, arguments.has("reverse") {
            throw Failure.usage("ls: --reverse turns an order round: give --sort with it")
        }
        let limit = try arguments.value("limit", as: Quantity.count) ?? .max
        let entries = Reader(try arguments.requireCache().entries(), isForNull: style == .null)
        let now = Date.now
        try Output.toStandardOutput { output in
            if style == .long { try output.write(header) }
            func write(_ line: Span<UInt8>) throws(Errno) {
                if style == .null { try output.writeRaw(line) } else { try output.write(line) }
            }
            guard let order else {
                for entry in entries.prefix(limit) { try write(line(entry, style, now).utf8Span.span) }
                return
            }
            var sorter = ListSorter(
                limit: limit,
                isReversed: arguments.has("reverse"),
                place: try scratchPlace()
            )
            for entry in entries { try sorter.add(line(entry, style, now), key: order.key(of: entry)) }
            try sorter.forEach { try write($0) }
        }
        if let note = entries.note { try Output.complain("ls: \(note)") }
        if let failure = entries.failure { throw failure }
        return .done
    }

    /// Where a list is sorted that does not fit memory.
    private static func scratchPlace() throws(Failure) -> String {
        let place = try Arguments.environment("TMPDIR") ?? ""
        return place.isEmpty ? "/tmp" : place
    }

    // MARK: Lines

    /// How an entry is written.
    enum Style: Equatable {
        case plain, long, null, json

        init(_ arguments: Arguments) throws(Failure) {
            let given: [(String, Style)] = [("long", .long), ("null", .null), ("json", .json)]
            let wanted = given.filter { arguments.has($0.0) }
            if wanted.count > 1 {
                throw .usage("ls: --\(wanted[0].0) and --\(wanted[1].0) exclude each other: give one")
            }
            self = wanted.first?.1 ?? .plain
        }
    }

    /// Widths that serve all but the oddest, as lines are written before the last is known: "1023.9 KiB",
    /// "364d 23h".
    private static let columns: [Table.Alignment] = [.right, .right, .right, .right, .left]
    private static let widths = [10, 8, 8, 8, 0]

    private static let header = Table.line(["SIZE", "AGE", "USED", "LEFT", "KEY"], columns, widths: widths)

    static func line(_ entry: CacheEntry, _ style: Style, _ now: Date) throws -> String {
        switch style {
        case .plain: return entry.name.escaped + "\n"
        case .null: return entry.name + "\0"
        case .json: return try JSON.line(EntryDescription(entry))
        case .long:
            let cells = [
                Quantity.text(bytes: Int64(entry.size)), Quantity.text(from: entry.created, to: now),
                entry.lastAccess.map { Quantity.text(from: $0, to: now) } ?? "",
                entry.expires.map { Quantity.text(from: now, to: $0) } ?? "never",
            ]
            // The key comes last and as it is: it may end in spaces.
            let head = Table.line(cells + ["|"], columns, widths: widths).dropLast(2)
            return head + entry.name.escaped + "\n"
        }
    }

    // MARK: Orders

    /// What `--sort` sorts by.
    enum Order: String, CaseIterable {
        case key, size, age, access, expires

        /// Bytes in whose order entries come; equal ones by key, so that the order is the same each time.
        func key(of entry: CacheEntry) -> [UInt8] {
            let first: UInt64? =
                switch self {
                case .key: nil
                case .size: .max - UInt64(clamping: entry.size)
                case .age: Self.place(of: entry.created)
                case .access: Self.place(of: entry.lastAccess ?? entry.created)
                case .expires: Self.place(of: entry.expires ?? .distantFuture)
                }
            var bytes: [UInt8] = []
            if let first {
                for shift in stride(from: 56, through: 0, by: -8) {
                    bytes.append(UInt8(truncatingIfNeeded: first >> UInt64(shift)))
                }
            }
            return bytes + entry.name.utf8
        }

        /// A number that is greater for a later moment: the bits of a floating-point number, negative ones turned
        /// round.
        private static func place(of date: Date) -> UInt64 {
            let bits = date.timeIntervalSinceReferenceDate.bitPattern
            return bits >> 63 == 0 ? bits | 1 << 63 : ~bits
        }
    }

    private static func order(_ text: String) throws(Failure) -> Order {
        if let order = Order(rawValue: text) { return order }
        throw .usage(
            "unknown order '\(text)': give \(Order.allCases.map(\.rawValue).joined(separator: ", "))"
        )
    }
}

/// The entries that can be read; of those that can't, the first failure is kept for the end.
private final class Reader: Sequence, IteratorProtocol {
    private var entries: CacheEntries.Iterator
    private let isForNull: Bool
    private(set) var failure: CacheError?
    private var unkept = 0
    private var withNull = 0

    /// - Parameter isForNull: leaves out entries whose key is not kept, and keys that contain a NUL: whoever reads
    ///   them would take what stands there for another key.
    init(_ entries: CacheEntries, isForNull: Bool) {
        self.entries = entries.makeIterator()
        self.isForNull = isForNull
    }

    func next() -> CacheEntry? {
        while let result = entries.next() {
            switch result {
            case .success(let entry):
                if isForNull, isLeftOut(entry) { continue }
                return entry
            case .failure(let error): failure = failure ?? error
            }
        }
        return nil
    }

    private func isLeftOut(_ entry: CacheEntry) -> Bool {
        guard let key = entry.key else {
            unkept += 1
            return true
        }
        if key.utf8.contains(0) {
            withNull += 1
            return true
        }
        return false
    }

    /// What was left out; nil: nothing.
    var note: String? {
        let parts = [
            unkept > 0 ? "\(Quantity.count(unkept, "key")) not kept by name" : nil,
            withNull > 0 ? "\(Quantity.count(withNull, "key")) with a NUL" : nil,
        ].compactMap(\.self)
        return parts.isEmpty ? nil : "left out by --null: " + parts.joined(separator: ", ")
    }
}
