// SPDX-License-Identifier: Apache-2.0

import Platform

/// What becomes of all values of a selection that were stored before a moment, however many there are.
///
/// Readers judge each record that they read by the rules in force; a collection deletes what they are meant for.
package struct RemovalRule: Sendable, Equatable {
    /// What it does to a value.
    package enum Effect: Sendable, Equatable {
        case remove
        /// It expires, if it has not; its stale period is then this one; nil: the one that it was stored with.
        case expire(staleFor: Duration?)
    }

    /// The version of the rules that it came with: later ones have higher numbers.
    package let number: UInt64
    package let effect: Effect
    package let selection: KeySelection
    /// What was created later is not meant, in whole milliseconds.
    let latest: Timestamp
    /// When it was made, by the clock of who made it.
    let moment: Timestamp

    /// The rule in whose place and in that of `earlier` it may stand, where both have values of one selection expire.
    ///
    /// It expires values when the earlier one did, and they are stale no longer than either let them be. Of those that the
    /// earlier was not meant for, ``Record/applying(_:accessed:)`` sees to it that none is stale for longer than by itself.
    /// So no value comes back; some are stale for less long (``loss(with:now:)``).
    fileprivate func merged(with earlier: RemovalRule) -> RemovalRule? {
        guard earlier.selection == selection, earlier.latest <= latest, earlier.moment <= moment,
            case .expire(let first) = earlier.effect, case .expire(let second) = effect,
            (first == nil) == (second == nil)
        else { return nil }
        let period = first.flatMap { first in second.map { min(first, $0 + (moment - earlier.moment)) } }
        return RemovalRule(
            number: number,
            effect: .expire(staleFor: period),
            selection: selection,
            latest: latest,
            moment: earlier.moment
        )
    }

    /// How much of its stale period a value may lose if `merged` takes the place of this rule, as a share of that.
    fileprivate func loss(in merged: RemovalRule, now: Timestamp) -> Double {
        guard case .expire(let own?) = effect, case .expire(let left?) = merged.effect else {
            // That of each value: as if it were an hour.
            return (latest - merged.moment) / .seconds(3600)
        }
        // What is over already is lost to nobody.
        let lost = latest + own - max(now, merged.moment + left)
        return max(.zero, lost) / max(own, .milliseconds(1))
    }

    /// Whether it may have a value of this selection expire.
    fileprivate func mayExpireOf(_ other: KeySelection) -> Bool {
        guard case .expire = effect else { return false }
        guard case .prefix = selection.form, case .prefix = other.form else { return true }
        return selection.covers(other) || other.covers(selection)
    }

    /// Whether a value is one of those.
    func isMeant(for record: Record) -> Bool {
        record.created <= latest && number > record.followedRule && selection.mayInclude(record)
    }
}

/// The rules of a directory, as its file `rules` has them.
///
/// ```
/// rules 1
/// version 1700000000124
/// remove 1700000000123 1700000000123 1700000000123 prefix thumbs/
/// expire 1700000000124 1700000000124 1700000000124 60000 tag user:1
/// check a1b2c3d4
/// ```
///
/// A rule has its number, the latest time of creation that it is meant for, and when it was made, in milliseconds since
/// 1970; `expire` then the stale period in milliseconds, or `-`; then `all`, `prefix` or `tag` with the text, in which
/// bytes below 21 and above 7e and `%` are written as `%0a`. The check is the CRC-32C of all that stands before its line.
package struct RemovalRules: Sendable, Equatable {
    /// Higher with each change.
    package private(set) var version: UInt64
    package private(set) var rules: [RemovalRule] = []

    /// So many make each read from disk some microseconds longer: before there are more, a collection has to make them
    /// superfluous.
    static let most = 64
    /// No version is as high; what others have written may say anything.
    private static let versionLimit: UInt64 = 1 << 63

    /// - Parameter version: of one that no version can be, half the limit counts, so that there are enough above it.
    init(version: UInt64 = 0) {
        self.version = version < Self.versionLimit ? version : Self.versionLimit / 2
    }

    /// Those up to `number` that are meant for a value, the oldest first.
    func meant(for record: Record, upTo number: UInt64) -> [RemovalRule] {
        rules.filter { $0.number <= number && $0.isMeant(for: record) }
    }

    /// The latest time of creation that any of them is meant for.
    var latest: Timestamp { rules.map(\.latest).max() ?? Timestamp(milliseconds: 0) }

    // MARK: Changing

    /// Adds one, under the next number.
    ///
    /// Numbers go with the time, so that they are not repeated where the file was lost.
    mutating func add(
        _ effect: RemovalRule.Effect,
        _ selection: KeySelection,
        latest: Timestamp,
        at moment: Timestamp,
        clock: Timestamp
    ) {
        raiseVersion(clock)
        rules.append(
            RemovalRule(
                number: version,
                effect: effect,
                selection: selection,
                latest: latest,
                moment: moment.wholeMilliseconds
            )
        )
    }

    /// Takes off those of which nothing is left to do.
    ///
    /// One that has taken another into itself since it was looked at is another rule, and stays.
    mutating func retire(_ over: [RemovalRule], clock: Timestamp) {
        rules.removeAll { over.contains($0) }
        raiseVersion(clock)
    }

    /// Takes off those above `number`, which are not in force.
    ///
    /// The process that made them was killed before they were. The next version is above theirs. With it they would come
    /// into force, although no generation was raised for them, and although values were put since then.
    mutating func dropUnenforced(above number: UInt64) {
        rules.removeAll { $0.number > number }
    }

    /// Takes off those that are meant for nothing that a later one, in force already, would not remove.
    mutating func dropSuperfluous(upTo number: UInt64) {
        let removing = rules.filter { $0.number <= number && $0.effect == .remove }
        rules.removeAll { rule in
            removing.contains {
                $0.number > rule.number && $0.latest >= rule.latest && $0.selection.covers(rule.selection)
            }
        }
    }

    /// Makes one rule of two that are in force and have values of one selection expire: of those that lose least by it.
    ///
    /// Not across a rule that may have the same values expire: that one would then be the first for some of them.
    ///
    /// - Returns: false if there are no such two.
    mutating func mergeTwo(upTo number: UInt64, now: Timestamp) -> Bool {
        var best: (earlier: Int, later: Int, merged: RemovalRule, loss: Double)?
        for later in rules.indices where rules[later].number <= number {
            let selection = rules[later].selection
            let earlier = rules[..<later].lastIndex { $0.effect != .remove && $0.selection == selection }
            guard let earlier, !rules[earlier + 1..<later].contains(where: { $0.mayExpireOf(selection) }),
                let merged = rules[later].merged(with: rules[earlier])
            else { continue }
            let loss = rules[later].loss(in: merged, now: now)
            if loss < best?.loss ?? .infinity { best = (earlier, later, merged, loss) }
        }
        guard let best else { return false }
        rules[best.later] = best.merged
        rules.remove(at: best.earlier)
        return true
    }

    private mutating func raiseVersion(_ clock: Timestamp) {
        version = max(version + 1, UInt64(clock.milliseconds))
    }
}

/// What a control file says of the rules from its beginning.
struct RuleMarks: Sendable, Equatable {
    /// 0: there are none in force.
    var version: UInt64 = 0
    /// ``RemovalRules/latest``.
    var latest = Timestamp(milliseconds: 0)
}

extension Record {
    /// The highest number of the rules that were in force when it was written; 0 where its time alone tells that.
    var followedRule: UInt64 {
        get { hasDetails ? details.followedRule ?? 0 : 0 }
        set { details.followedRule = newValue }
    }

    /// What rules that are meant for it, the oldest first, leave of it; nil: nothing.
    ///
    /// - Parameter accessed: the access time of its entry, asked for where accesses prolong its life.
    func applying(
        _ rules: [RemovalRule],
        accessed: () throws(CacheError) -> Timestamp
    ) throws(CacheError) -> Record? {
        var record = self
        for rule in rules {
            switch rule.effect {
            case .remove: return nil
            case .expire(let period):
                let time = record.idleLifetime == nil ? Timestamp.distantPast : try accessed()
                let expiry = record.expiry(accessed: time, now: rule.moment)
                // What had expired by itself stays as it was: it must not be stale for longer.
                if let expiry, expiry <= rule.moment { continue }
                // It may be later than that moment, and have expired since, if the rule stands for several.
                let isLater = created > rule.moment || followedRule != 0
                let end = isLater ? expiry.map { $0 + (record.staleFor ?? .zero) } : nil
                record.expire(at: rule.moment, staleFor: period)
                if let end, let period = record.staleFor, rule.moment + period > end {
                    record.staleFor = end - rule.moment
                }
            }
        }
        return record
    }
}

// MARK: - Text

extension RemovalRules {
    /// The file.
    var bytes: [UInt8] {
        var lines = ["rules 1", "version \(version)"]
        lines += rules.map(\.line)
        let text = lines.joined(separator: "\n") + "\n"
        return Array((text + "check \(Self.check(text))\n").utf8)
    }

    /// Reads ``bytes``; nil for anything else.
    init?(_ bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count >= 4, lines.popLast() == "", let check = lines.popLast(),
            check == "check \(Self.check(lines.joined(separator: "\n") + "\n"))", lines[0] == "rules 1",
            lines[1].hasPrefix("version "), let version = UInt64(lines[1].dropFirst("version ".utf8.count)),
            version < Self.versionLimit
        else { return nil }
        self.init(version: version)
        for line in lines.dropFirst(2) {
            guard let rule = RemovalRule(line), rule.number <= version else { return nil }
            rules.append(rule)
        }
    }

    private static func check(_ text: String) -> String {
        String(CRC32C.checksum(Array(text.utf8).span), radix: 16)
    }
}

extension RemovalRule {
    /// Its line in the file.
    fileprivate var line: String {
        let numbers = "\(number) \(latest.milliseconds) \(moment.milliseconds)"
        switch effect {
        case .remove: return "remove \(numbers) \(Self.words(selection))"
        case .expire(let period):
            let span = period.map { "\(max(0, $0.milliseconds))" } ?? "-"
            return "expire \(numbers) \(span) \(Self.words(selection))"
        }
    }

    /// Reads ``line``; nil for anything else.
    fileprivate init?(_ line: Substring) {
        var words = line.split(separator: " ", omittingEmptySubsequences: false)[...]
        guard let kind = words.popFirst(), let number = words.popFirst().flatMap({ UInt64($0) }),
            let latest = words.popFirst().flatMap({ Int64($0) }), latest >= 0,
            let moment = words.popFirst().flatMap({ Int64($0) }), moment >= 0
        else { return nil }
        switch kind {
        case "remove": effect = .remove
        case "expire":
            guard let word = words.popFirst() else { return nil }
            let period = Int64(word)
            guard word == "-" || period ?? -1 >= 0 else { return nil }
            effect = .expire(staleFor: period.map { Duration.milliseconds($0) })
        default: return nil
        }
        guard let selection = Self.selection(words) else { return nil }
        self.number = number
        self.selection = selection
        self.latest = Timestamp(milliseconds: latest)
        self.moment = Timestamp(milliseconds: moment)
    }

    private static func words(_ selection: KeySelection) -> String {
        switch selection.form {
        case .all: "all"
        case .prefix(let text): "prefix \(escaped(text))"
        case .tagged(let text): "tag \(escaped(text))"
        // None is made for one.
        case .glob(let text): "glob \(escaped(text))"
        }
    }

    private static func selection(_ words: ArraySlice<Substring>) -> KeySelection? {
        if words.count == 1 { return words.first == "all" ? .all : nil }
        guard words.count == 2, let kind = words.first, let text = words.last.flatMap({ unescaped($0) })
        else { return nil }
        return switch kind {
        case "prefix": .prefix(text)
        case "tag": .tagged(text)
        default: nil
        }
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for byte in text.utf8 {
            if byte > 0x20, byte < 0x7f, byte != UInt8(ascii: "%") {
                escaped.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                escaped += (byte < 16 ? "%0" : "%") + String(byte, radix: 16)
            }
        }
        return escaped
    }

    private static func unescaped(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            if byte != UInt8(ascii: "%") {
                bytes.append(byte)
                continue
            }
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            guard digits.utf8.count == 2, let value = UInt8(digits, radix: 16) else { return nil }
            rest = rest.dropFirst(2)
            bytes.append(value)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}
