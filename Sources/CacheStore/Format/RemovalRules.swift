// SPDX-License-Identifier: Apache-2.0

import Platform

/// A rule that removes or expires all values of a selection that were created up to a moment, however many there are.
///
/// Readers apply the rules in force to each record that they read; a collection deletes the values that are removed or
/// have expired as a result.
package struct RemovalRule: Sendable, Equatable {
    /// The effect of a rule on a value.
    package enum Effect: Sendable, Equatable {
        case remove
        /// Expire the value unless it has expired already; its stale period becomes this one, or stays unchanged if that
        /// is nil.
        case expire(staleFor: Duration?)
    }

    /// The version of the rules that added this rule; later rules have higher numbers.
    package let number: UInt64
    package let effect: Effect
    package let selection: KeySelection
    /// The latest creation time of the values that the rule applies to, in whole milliseconds.
    let latest: Timestamp
    /// When the rule was made, by the clock of the process that made it; for merged rules, when the earliest was made.
    let moment: Timestamp

    /// Returns a rule that can replace this one and `earlier`; nil unless both expire values of one selection and can be
    /// merged.
    ///
    /// The merged rule expires values at the moment of the earlier rule, and their stale period ends no later than either
    /// rule allows. For values that the earlier rule does not apply to, ``Record/applying(_:accessed:)`` ensures that
    /// none is stale for longer than without the rule. So no value becomes valid again, but some are stale for less time
    /// (``loss(in:now:)``).
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

    /// Returns the fraction of its stale period that a value may lose if `merged` replaces this rule.
    fileprivate func loss(in merged: RemovalRule, now: Timestamp) -> Double {
        guard case .expire(let own?) = effect, case .expire(let left?) = merged.effect else {
            // Each value has its own stale period: assume an hour.
            return (latest - merged.moment) / .seconds(3600)
        }
        // A stale period that is already over can't be lost.
        let lost = latest + own - max(now, merged.moment + left)
        return max(.zero, lost) / max(own, .milliseconds(1))
    }

    /// Returns whether the rule may expire a value of this selection.
    fileprivate func mayExpireOf(_ other: KeySelection) -> Bool {
        guard case .expire = effect else { return false }
        guard case .prefix = selection.form, case .prefix = other.form else { return true }
        return selection.covers(other) || other.covers(selection)
    }

    /// Returns whether the rule applies to a value.
    func isMeant(for record: Record) -> Bool {
        record.created <= latest && number > record.followedRule && selection.mayInclude(record)
    }
}

/// The rules of a directory, as stored in its file `rules`.
///
/// ```
/// rules 1
/// version 1700000000124
/// remove 1700000000123 1700000000123 1700000000123 prefix thumbs/
/// expire 1700000000124 1700000000124 1700000000124 60000 tag user:1
/// check a1b2c3d4
/// ```
///
/// A rule consists of its number, the latest creation time that it applies to, and the time when it was made; both times
/// are in milliseconds since 1970. An `expire` rule then has its stale period in milliseconds, or `-` for an unchanged
/// one. The selection follows: `all`, or `prefix` or `tag` with a text. In the text, `%` and all bytes below 0x21 or
/// above 0x7e are escaped like `%0a`. The check is the CRC-32C of all text before its line.
package struct RemovalRules: Sendable, Equatable {
    /// Increases with each change.
    package private(set) var version: UInt64
    package private(set) var rules: [RemovalRule] = []

    /// The maximum number of rules.
    ///
    /// With this many, each read from disk takes some microseconds longer. Before another rule can be added, two have to
    /// be merged or a collection has to make some superfluous.
    static let most = 64
    /// All valid versions are lower; a file that other programs have written may contain any number.
    private static let versionLimit: UInt64 = 1 << 63

    /// Creates an empty list of rules.
    ///
    /// - Parameter version: The version. If it is not valid, half the limit is used instead, so that enough higher
    ///   versions are left.
    init(version: UInt64 = 0) {
        self.version = version < Self.versionLimit ? version : Self.versionLimit / 2
    }

    /// Returns the rules up to `number` that apply to a value, the oldest first.
    func meant(for record: Record, upTo number: UInt64) -> [RemovalRule] {
        rules.filter { $0.number <= number && $0.isMeant(for: record) }
    }

    /// The latest creation time that any rule applies to.
    var latest: Timestamp { rules.map(\.latest).max() ?? Timestamp(milliseconds: 0) }

    // MARK: Changing

    /// Adds a rule with the next number.
    ///
    /// Numbers are derived from the clock, so that they are not repeated if the file is lost.
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

    /// Removes rules that no longer apply to any value.
    ///
    /// A rule that has been merged with another one since it was checked is a different rule, and stays.
    mutating func retire(_ over: [RemovalRule], clock: Timestamp) {
        rules.removeAll { over.contains($0) }
        raiseVersion(clock)
    }

    /// Removes the rules above `number`, which are not in force.
    ///
    /// The process that made them was killed before it put them in force. The next version is higher than their numbers
    /// and would put them in force, although no generation was raised for them and values were stored since then.
    mutating func dropUnenforced(above number: UInt64) {
        rules.removeAll { $0.number > number }
    }

    /// Removes rules that apply only to values which a later rule, already in force, removes.
    mutating func dropSuperfluous(upTo number: UInt64) {
        let removing = rules.filter { $0.number <= number && $0.effect == .remove }
        rules.removeAll { rule in
            removing.contains {
                $0.number > rule.number && $0.latest >= rule.latest && $0.selection.covers(rule.selection)
            }
        }
    }

    /// Merges the pair of rules that shortens stale periods least; both must be in force and expire values of one
    /// selection.
    ///
    /// Two rules are not merged if a rule between them may expire the same values: that rule would otherwise become the
    /// first to apply to some of them.
    ///
    /// - Returns: false if there is no such pair.
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

/// The state of the rules that a new control file starts with.
struct RuleMarks: Sendable, Equatable {
    /// 0 if no rules are in force.
    var version: UInt64 = 0
    /// ``RemovalRules/latest``.
    var latest = Timestamp(milliseconds: 0)
}

extension Record {
    /// The highest number of the rules that were in force when the record was written; 0 if its creation time alone shows
    /// which rules apply to it.
    var followedRule: UInt64 {
        get { hasDetails ? details.followedRule ?? 0 : 0 }
        set { details.followedRule = newValue }
    }

    /// Returns the record as the given rules change it, the oldest rule first; nil if they remove it.
    ///
    /// - Parameter accessed: Returns the access time of the entry; called only if accesses prolong its life.
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
                // A value that had already expired stays unchanged, so that its stale period does not become longer. An
                // access after the rule says nothing about earlier ones, which may have kept the value fresh.
                if let expiry, expiry <= rule.moment, time <= rule.moment { continue }
                // If the rule replaces several merged rules, the value may be newer than `moment` and may have expired
                // since.
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
    /// The contents of the file.
    var bytes: [UInt8] {
        var lines = ["rules 1", "version \(version)"]
        lines += rules.map(\.line)
        let text = lines.joined(separator: "\n") + "\n"
        return Array((text + "check \(Self.check(text))\n").utf8)
    }

    /// Parses ``bytes``; nil for anything else.
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
    /// The rule's line in the file.
    fileprivate var line: String {
        let numbers = "\(number) \(latest.milliseconds) \(moment.milliseconds)"
        switch effect {
        case .remove: return "remove \(numbers) \(Self.words(selection))"
        case .expire(let period):
            let span = period.map { "\(max(0, $0.milliseconds))" } ?? "-"
            return "expire \(numbers) \(span) \(Self.words(selection))"
        }
    }

    /// Parses ``line``; nil for anything else.
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
        // Never used: no rule is made for a pattern.
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
