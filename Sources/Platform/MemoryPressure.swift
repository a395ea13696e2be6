// SPDX-License-Identifier: Apache-2.0

import Glibc

/// How short memory is.
package enum MemoryPressure: Int, Sendable, Comparable {
    /// There is enough.
    case none
    /// Work is being held up: caches should give some of theirs back.
    case some
    /// Little is left before processes are killed: caches should give most of theirs back.
    case critical

    package static func < (left: MemoryPressure, right: MemoryPressure) -> Bool {
        left.rawValue < right.rawValue
    }
}

/// The first line of a pressure file: the time in which some task waited for memory.
///
/// `some avg10=0.12 avg60=0.05 avg300=0.00 total=12345`, Documentation/accounting/psi.rst.
package struct MemoryStall: Sendable, Equatable {
    /// Percent of the last ten seconds.
    package var recent: Double

    package init(recent: Double) {
        self.recent = recent
    }

    /// Reads a pressure file; nil for anything else.
    package init?(parsing text: some StringProtocol) {
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("some ") }),
            let field = line.split(separator: " ").first(where: { $0.hasPrefix("avg10=") }),
            let recent = Double(field.dropFirst("avg10=".count)), recent.isFinite, recent >= 0
        else { return nil }
        self.recent = recent
    }

    /// What that means.
    ///
    /// From 10 % on, each task that allocates loses a tenth of its time, which is noticed. 40 % is where
    /// machines stop to do useful work: systemd-oomd kills at 60 % of a stall that holds all tasks up, which is
    /// the stricter measure.
    package var pressure: MemoryPressure {
        recent >= 40 ? .critical : recent >= 10 ? .some : .none
    }
}

/// What a control group uses of the memory that it may use.
package struct MemoryAllowance: Sendable, Equatable {
    /// Bytes in use, without the page cache, which the kernel takes back by itself.
    package var used: Int64
    /// Bytes that may be used at most.
    package var limit: Int64

    package init(used: Int64, limit: Int64) {
        self.used = used
        self.limit = limit
    }

    /// What that means: from 90 % on some pressure, from 97 % on a critical one.
    ///
    /// Beyond the limit the kernel slows the group down (memory.high) or kills in it (memory.max).
    package var pressure: MemoryPressure {
        guard limit > 0 else { return .critical }
        let part = Double(used) / Double(limit)
        return part >= 0.97 ? .critical : part >= 0.9 ? .some : .none
    }

    /// The number in memory.current, memory.high or memory.max; nil for "max", which means that there is none.
    package static func bytes(parsing text: some StringProtocol) -> Int64? {
        guard let line = text.split(separator: "\n").first, let bytes = Int64(line), bytes >= 0 else {
            return nil
        }
        return bytes
    }

    /// The bytes of page cache in memory.stat: `inactive_file` and `active_file`.
    package static func pageCache(parsing text: some StringProtocol) -> Int64 {
        var sum: Int64 = 0
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 2, words[0] == "inactive_file" || words[0] == "active_file" else { continue }
            sum += Int64(words[1]) ?? 0
        }
        return sum
    }
}
