// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// `diskcache ls`.
enum ListCommand: Command {
    static let name = "ls"
    static let summary = "list keys, one per line"
    static let optionList = """
        -l, --long  show size, age, time since the last access and time to expiration
        --sort ORDER{\(Order.names)}  sort by key, size, age, access or expires
        -r, --reverse  reverse the order of --sort
        -n, --limit COUNT  list at most COUNT keys
        -0, --null  print raw keys, each followed by a NUL, for xargs -0
        \(SelectionOptions.list)
        \(Option.json)
        """
    static let exclusive = [["long", "null", "json"]] + SelectionOptions.exclusive
    static let details = """
        --sort key sorts by bytes. The other orders list the largest, the oldest, the least recently used or
        the soonest to expire first. Without --sort, the order is unspecified. sort(1) does the sorting, and
        needs space in $TMPDIR or /tmp for what exceeds 32 MiB. Memory use is constant in any case.

        Control characters and backslashes in keys are escaped as in C (\\n, \\t, \\r, \\\\, \\x1b), except
        with --null. A key stored only as a digest (because it is longer than 1 KiB, or on request) is shown
        as sha256: and its digest. --null skips such keys and keys that contain a NUL, and reports on standard
        error how many it skipped. Expired values are not listed. When you pass keys to a command, put --
        before them, because a key can look like an option; if $DISKCACHE_SCOPE is set, also give --scope ''.

        \(SelectionOptions.help)
        Keys stored only as digests match neither.

        JSON: one object per line, as from `diskcache put --json`.

        Exit status: 0 done, even if there are no keys; 64 usage; 73 not a directory; 74 or 77 something can't
        be read; 78 there is no cache.

        Examples:
          diskcache ls --long --sort size --limit 10
          diskcache ls --prefix thumbs/
          diskcache ls --null | xargs -0r diskcache rm --
        """

    static func run(_ arguments: Arguments) throws -> ExitStatus {
        let style = Style.allCases.first { arguments.has($0.rawValue) } ?? .plain
        let order = try arguments.value("sort", as: self.order)
        if order == nil, arguments.has("reverse") {
            throw Failure.usage("ls: --reverse needs an order: give --sort too")
        }
        let limit = try arguments.value("limit", as: Quantity.count) ?? .max
        let selection = try SelectionOptions.selection(arguments)
        // Remembers the first unreadable entry, which is reported at the end.
        var failure: CacheError?
        var (unkept, withNull) = (0, 0)
        let entries = try arguments.requireCache().entries(selection).lazy.compactMap {
            result -> CacheEntry? in
            let entry: CacheEntry
            switch result {
            case .success(let found): entry = found
            case .failure(let error):
                failure = failure ?? error
                return nil
            }
            guard style == .null else { return entry }
            // A missing key, and a key with a NUL, would look like other keys in a list that NULs separate.
            if entry.key == nil { unkept += 1 }
            let hasNull = entry.key?.utf8.contains(0) ?? false
            if hasNull { withNull += 1 }
            return entry.key == nil || hasNull ? nil : entry
        }
        let now = Date.now
        try Output.toStandardOutput { output in
            if style == .long {
                let names = ["SIZE", "AGE", "USED", "LEFT"]
                let heading = Table.line(names, key: "KEY", columns, widths: widths)
                try output.writeRaw(Colour.bold.ifWanted(heading, on: Terminal.standardOutput).utf8Span.span)
            }
            func write(_ line: Span<UInt8>) throws(Errno) {
                guard style == .null else { return try output.write(line) }
                try output.writeRaw(line)
                try output.writeRaw([0].span)
            }
            guard let order else {
                for entry in entries.prefix(limit) { try write(line(entry, style, now).utf8Span.span) }
                return
            }
            var sorter = try ListSorter(isReversed: arguments.has("reverse"))
            for entry in entries {
                try sorter.add(line(entry, style, now), key: order.key(of: entry))
            }
            try sorter.forEach(limit: limit, write)
        }
        let skipped = [(unkept, "stored only as digests"), (withNull, "with a NUL")].filter { $0.0 > 0 }
        let note = skipped.map { "\(Quantity.count($0.0, "key")) \($0.1)" }.joined(separator: ", ")
        if !note.isEmpty { try Output.complain("ls: skipped by --null: \(note)") }
        if let failure { throw failure }
        return .done
    }

    // MARK: Lines

    /// The format of an entry.
    enum Style: String, CaseIterable {
        case plain, long, null, json
    }

    /// Column widths that fit almost all lines, such as "1023.9 KiB" and "364d 23h".
    ///
    /// They are fixed, because the first lines are written before the last ones are known.
    private static let columns: [Table.Alignment] = [.right, .right, .right, .right]
    private static let widths = [10, 8, 8, 8]

    static func line(_ entry: CacheEntry, _ style: Style, _ now: Date) throws -> String {
        switch style {
        case .plain: return entry.name.escaped + "\n"
        case .null: return entry.name
        case .json: return try JSON.line(entry.json)
        case .long:
            let cells = [
                Quantity.text(bytes: Int64(entry.size)), Quantity.text(from: entry.created, to: now),
                entry.lastAccess.map { Quantity.text(from: $0, to: now) } ?? "",
                entry.expires.map { Quantity.text(from: now, to: $0) } ?? "never",
            ]
            return Table.line(cells, key: entry.name, columns, widths: widths)
        }
    }

    // MARK: Orders

    /// The sort order of `--sort`.
    enum Order: String, CaseIterable {
        case key, size, age, access, expires

        static let names = allCases.map(\.rawValue).joined(separator: ", ")

        /// Returns the text by which entries are sorted; texts are compared as bytes.
        ///
        /// Entries with equal values are sorted by key, so that the order is reproducible.
        func key(of entry: CacheEntry) -> String {
            let first: UInt64
            switch self {
            case .key: return entry.name
            case .size: first = .max - UInt64(clamping: entry.size)
            case .age: first = Self.place(of: entry.created)
            case .access: first = Self.place(of: entry.lastAccess ?? entry.created)
            case .expires: first = Self.place(of: entry.expires ?? .distantFuture)
            }
            let digits = String(first, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits + entry.name
        }

        /// Returns a number that is greater for a later time.
        ///
        /// These are the bits of the floating-point number, inverted if it is negative.
        private static func place(of date: Date) -> UInt64 {
            let bits = date.timeIntervalSinceReferenceDate.bitPattern
            return bits >> 63 == 0 ? bits | 1 << 63 : ~bits
        }
    }

    private static func order(_ text: String) throws(Failure) -> Order {
        if let order = Order(rawValue: text) { return order }
        throw .usage("unknown order '\(text)': give one of \(Order.names)")
    }
}
