// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

@Suite(.takesTurns) struct RemovalRulesTests {
    private let begin = Timestamp(milliseconds: 1_700_000_000_000)

    private func rules(_ made: [(RemovalRule.Effect, KeySelection)]) -> RemovalRules {
        var rules = RemovalRules()
        for (effect, selection) in made {
            rules.add(effect, selection, latest: begin, at: begin, clock: begin)
        }
        return rules
    }

    private func record(_ key: String = "key", created: Timestamp, expires: Timestamp? = nil) -> Record {
        var record = Record(content: Content(of: [1].span), created: created)
        record.key = key
        record.expires = expires
        return record
    }

    private func applied(_ rules: RemovalRules, _ record: Record, accessed: Timestamp = .distantPast) throws
        -> Record?
    {
        try record.applying(rules.meant(for: record, upTo: .max)) { () throws(CacheError) in accessed }
    }

    // MARK: File

    @Test func `written rules can be read back, whatever their texts`() {
        let made = rules([
            (.remove, .all), (.remove, .prefix("a b/\n%20\u{1f600}")), (.expire(staleFor: nil), .tagged("")),
            (.expire(staleFor: .milliseconds(1500)), .prefix("x")), (.expire(staleFor: .zero), .all),
        ])
        #expect(RemovalRules(made.bytes) == made)
        #expect(made.rules.count == 5 && Set(made.rules.map(\.number)).count == 5)
        #expect(RemovalRules(RemovalRules().bytes) == RemovalRules())
    }

    @Test func `a rules file with a changed byte or cut short is rejected`() {
        let made = rules([(.remove, .prefix("thumbs/")), (.expire(staleFor: .seconds(1)), .tagged("t"))])
        let bytes = made.bytes
        for place in bytes.indices {
            var other = bytes
            other[place] ^= 1
            #expect(RemovalRules(other) == nil, "\(place)")
            #expect(RemovalRules(Array(bytes.prefix(place))) == nil, "\(place)")
        }
        #expect(RemovalRules([]) == nil && RemovalRules(bytes + [10]) == nil)
    }

    /// Parses a file of version 2 that contains `line` and a valid checksum.
    private func parsed(_ line: String) -> RemovalRules? {
        let text = "rules 1\nversion 2\n\(line)\n"
        let check = String(CRC32C.checksum(Array(text.utf8).span), radix: 16)
        return RemovalRules(Array("\(text)check \(check)\n".utf8))
    }

    @Test(arguments: [
        "remove 1 1 1", "remove 1 1 1 all all", "remove -1 1 1 all", "remove 1 -1 1 all", "remove 1 1 -1 all",
        "remove 99999999999999999999 1 1 all", "remove 3 1 1 all", "expire 1 1 1 all", "expire 1 1 1 -1 all",
        "expire 1 1 1 x all", "keep 1 1 1 all", "remove 1 1 1 prefix %", "remove 1 1 1 prefix %g0",
        "remove 1 1 1 tag %ff", "remove 1 1 1 glob *", "", " ",
    ])
    func `a malformed line makes the whole file invalid`(line: String) {
        #expect(parsed(line) == nil)
    }

    @Test func `times and periods at the limits of a number are accepted`() throws {
        let most = Int64.max
        let rules = try #require(parsed("expire 2 \(most) \(most) \(most) all"))
        let value = record(created: begin)
        #expect(rules.meant(for: value, upTo: .max).count == 1)
        #expect(try applied(rules, value)?.expires != nil)
        #expect(RemovalRules(rules.bytes) != nil)
        #expect(parsed("remove 2 0 0 all")?.meant(for: value, upTo: .max).isEmpty == true)
    }

    @Test(arguments: [.max, 1 << 63, 1 << 63 - 1, 1 << 62 + 1] as [UInt64])
    func `rule versions that follow any word can be read back`(word: UInt64) {
        var rules = RemovalRules(version: word)
        rules.add(.remove, .all, latest: begin, at: begin, clock: begin)
        // A file with the very last number is rejected; its replacement is valid.
        if RemovalRules(rules.bytes) == nil {
            rules = RemovalRules(version: rules.version)
            rules.add(.remove, .all, latest: begin, at: begin, clock: begin)
        }
        #expect(RemovalRules(rules.bytes) == rules)
        #expect(rules.version != word)
    }

    @Test func `rule numbers follow the clock and always increase`() {
        var rules = RemovalRules()
        rules.add(.remove, .all, latest: begin, at: begin, clock: begin)
        #expect(rules.version == 1_700_000_000_000)
        rules.add(.remove, .all, latest: begin, at: begin, clock: begin - .seconds(10))
        #expect(rules.version == 1_700_000_000_001)
    }

    // MARK: Effects

    @Test func `a rule applies to values created up to its time that do not follow it`() throws {
        let rules = rules([(.remove, .prefix("k"))])
        #expect(try applied(rules, record(created: begin)) == nil)
        #expect(try applied(rules, record(created: begin + .milliseconds(1))) != nil)
        #expect(try applied(rules, record("other", created: begin)) != nil)
        var later = record(created: begin)
        later.followedRule = rules.version
        #expect(try applied(rules, later) == later)
        let bytes = later.encoded(for: Digest(ofKey: "key"))
        #expect(Record(decoding: bytes, for: Digest(ofKey: "key"))?.followedRule == rules.version)
        #expect(rules.meant(for: record(created: begin), upTo: rules.version - 1).isEmpty)
    }

    @Test func `a rule expires a fresh value, with the stale period of the rule or the value`() throws {
        let old = begin - .seconds(100)
        var value = record(created: old)
        value.staleFor = .seconds(7)
        let own = try #require(try applied(rules([(.expire(staleFor: nil), .all)]), value))
        #expect(own.expires == begin && own.staleFor == .seconds(7))
        let given = try #require(try applied(rules([(.expire(staleFor: .seconds(60)), .all)]), value))
        #expect(given.freshness(at: begin - .milliseconds(1), accessed: .distantPast) == .fresh)
        #expect(given.freshness(at: begin, accessed: .distantPast) == .stale)
        #expect(given.freshness(at: begin + .seconds(60), accessed: .distantPast) == .expired)
        value.expires = begin - .seconds(1)
        #expect(try applied(rules([(.expire(staleFor: .seconds(60)), .all)]), value) == value)
    }

    @Test func `a rule expires a sliding value that is alive, and leaves an expired one unchanged`() throws {
        var value = record(created: begin - .seconds(100), expires: begin - .seconds(50))
        value.idleLifetime = .seconds(50)
        let rules = rules([(.expire(staleFor: .seconds(60)), .all)])
        let alive = try #require(try applied(rules, value, accessed: begin - .seconds(10)))
        #expect(alive.expires == begin && alive.idleLifetime == nil && alive.staleFor == .seconds(60))
        #expect(try applied(rules, value, accessed: begin - .seconds(60)) == value)
        // Noted late, by a process that read the value before the rule.
        for delay in [1, 120] {
            let accessed = try applied(rules, value, accessed: begin + .seconds(delay))
            #expect(accessed?.expires == begin && accessed?.idleLifetime == nil)
        }
    }

    @Test func `the first of several rules that ends a value counts`() throws {
        var rules = RemovalRules()
        rules.add(.expire(staleFor: .seconds(60)), .all, latest: begin, at: begin, clock: begin)
        let later = begin + .seconds(10)
        rules.add(.expire(staleFor: .zero), .all, latest: later, at: later, clock: later)
        let value = try #require(try applied(rules, record(created: begin)))
        #expect(value.expires == begin && value.staleFor == .seconds(60))
        rules.add(.remove, .tagged("t"), latest: later, at: later, clock: later)
        #expect(try applied(rules, record(created: begin)) != nil)
        rules.add(.remove, .all, latest: later, at: later, clock: later)
        #expect(try applied(rules, record(created: begin)) == nil)
    }

    // MARK: Merging

    /// Returns rules, a minute apart, that expire all values.
    private func chain(_ count: Int, staleFor period: Duration?) -> RemovalRules {
        var rules = RemovalRules()
        for minute in 0..<count {
            let moment = begin + .seconds(60 * minute)
            rules.add(.expire(staleFor: period), .all, latest: moment, at: moment, clock: moment)
        }
        return rules
    }

    private func expectMerged(_ rules: inout RemovalRules, now: Timestamp) {
        let isMerged = rules.mergeTwo(upTo: .max, now: now)
        #expect(isMerged)
    }

    @Test func `two rules in force that expire the same selection are merged`() {
        var made = rules([
            (.expire(staleFor: .seconds(60)), .prefix("a")), (.remove, .prefix("b")),
            (.expire(staleFor: .seconds(60)), .prefix("c")), (.expire(staleFor: nil), .prefix("a")),
            (.remove, .tagged("t")), (.expire(staleFor: .seconds(30)), .prefix("c")),
        ])
        let before = made
        let isEarly = made.mergeTwo(upTo: made.rules[4].number, now: begin)
        #expect(!isEarly && made == before)
        let last = made.rules[5]
        expectMerged(&made, now: begin)
        #expect(
            made.rules.map(\.selection) == [
                .prefix("a"), .prefix("b"), .prefix("a"), .tagged("t"), .prefix("c"),
            ]
        )
        #expect(
            made.rules[4].number == last.number && made.rules[4].effect == .expire(staleFor: .seconds(30))
        )
        let isMerged = made.mergeTwo(upTo: .max, now: begin)
        #expect(!isMerged)
    }

    @Test(arguments: [KeySelection.prefix("k"), .all, .tagged("u")])
    func `rules are not merged across one that may expire the same values`(between: KeySelection) throws {
        var made = RemovalRules()
        let selections = [KeySelection.tagged("t"), .tagged("t"), between, .tagged("t")]
        for (second, selection) in selections.enumerated() {
            let moment = begin + .seconds(second)
            let period: Duration? = selection == between ? nil : .seconds(3600)
            made.add(.expire(staleFor: period), selection, latest: moment, at: moment, clock: moment)
        }
        // Stored between the first two rules.
        var value = record(created: begin + .milliseconds(500))
        value.details.tags = ["t", "u"]
        while made.mergeTwo(upTo: .max, now: begin + .seconds(4)) {}
        #expect(made.rules.count == 3)
        let left = try #require(try applied(made, value))
        #expect(left.freshness(at: begin + .seconds(3599), accessed: .distantPast) == .stale)
    }

    @Test func `rules whose period is over are merged first, then those close in time`() {
        var made = chain(10, staleFor: .seconds(300))
        let now = begin + .seconds(540)
        // The periods of the first rules are over at the time of the last one.
        for _ in 0..<4 { expectMerged(&made, now: now) }
        #expect(made.rules.map(\.moment) == [0, 5, 6, 7, 8, 9].map { begin + .seconds(60 * $0) })
        expectMerged(&made, now: now)
        #expect(made.rules.count == 5)
    }

    @Test func `a tag that is expired every minute keeps nearly all of a long stale period`() throws {
        var made = RemovalRules()
        let (hours, count) = (Duration.seconds(3 * 3600), 400)
        for minute in 0..<count {
            let moment = begin + .seconds(60 * minute)
            if made.rules.count == RemovalRules.most { expectMerged(&made, now: moment) }
            made.add(.expire(staleFor: hours), .tagged("t"), latest: moment, at: moment, clock: moment)
        }
        let end = begin + .seconds(60 * (count - 1))
        for minute in stride(from: count - 179, to: count, by: 7) {
            // Stored a second before the rule. The loss counts only from `end` on, as stale periods before it are over.
            var value = record(created: begin + .seconds(60 * minute - 1))
            value.details.tags = ["t"]
            let left = try #require(try applied(made, value))
            let period = try #require(left.expires.flatMap { expires in left.staleFor.map { expires + $0 } })
            let whole = begin + .seconds(60 * minute) + hours
            #expect(period <= whole && whole - max(period, end) < hours / 16)
            #expect(left.freshness(at: end, accessed: .distantPast) != .fresh)
        }
    }

    /// Tests values stored while these rules take effect, some of them by differing clocks.
    ///
    /// Two seeds of sixty, chosen at random; all with `DISKCACHE_SOAK=1`.
    @Test(arguments: sample(2, of: UInt64(0)..<60))
    func `merged rules never leave a value fresher than the original rules`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        func seconds(_ range: ClosedRange<Int>) -> Duration {
            .seconds(Int.random(in: range, using: &generator))
        }
        var made = RemovalRules()
        var times: [Timestamp] = []
        let ownPeriods = Bool.random(using: &generator)
        for _ in 0..<12 {
            let moment = (times.last ?? begin) + seconds(1...20)
            times.append(moment)
            let latest = moment + (Int.random(in: 0..<4, using: &generator) == 0 ? seconds(0...15) : .zero)
            let period = ownPeriods ? nil : seconds(0...60)
            let selection = [KeySelection.all, .prefix("k")].randomElement(using: &generator) ?? .all
            made.add(
                .expire(staleFor: period),
                selection,
                latest: max(latest, made.latest),
                at: moment,
                clock: moment
            )
        }
        let last = try #require(times.last)
        var values: [Record] = []
        for _ in 0..<300 {
            let moment = begin + seconds(-30...250)
            let created = moment + (Bool.random(using: &generator) ? seconds(-10...10) : .zero)
            var value = record(created: created)
            if Bool.random(using: &generator) { value.expires = created + seconds(0...120) }
            if Bool.random(using: &generator) { value.staleFor = seconds(0...90) }
            let inForce = zip(made.rules, times).prefix { $0.1 <= moment }.map(\.0)
            if let number = inForce.last?.number, created <= inForce.map(\.latest).max() ?? created {
                value.followedRule = number
            }
            values.append(value)
        }
        let before = made
        while made.mergeTwo(upTo: .max, now: last) {
            for value in values {
                let (old, new) = (
                    try #require(try applied(before, value)), try #require(try applied(made, value))
                )
                for second in 0..<200 {
                    let now = last + .seconds(second)
                    let (was, left) = [old, new].map { $0.freshness(at: now, accessed: .distantPast) }.pair
                    #expect(was == left || was == .stale && left == .expired, "\(value)")
                }
            }
        }
        #expect(made.rules.count < 12)
    }

    /// The value is stored after the first rule and expires before the second.
    @Test(arguments: [nil, .seconds(5)] as [Duration?])
    func `a value that expired between two rules gains no stale time by their merger`(period: Duration?)
        throws
    {
        var made = chain(2, staleFor: .seconds(600))
        var value = record(created: begin + .seconds(10), expires: begin + .seconds(20))
        value.staleFor = period
        let before = try #require(try applied(made, value))
        expectMerged(&made, now: begin + .seconds(60))
        let after = try #require(try applied(made, value))
        for second in 60..<700 {
            let now = begin + .seconds(second)
            for value in [before, after] {
                #expect(value.freshness(at: now, accessed: .distantPast) == .expired, "\(second)")
            }
        }
    }

    @Test func `a merged rule is not retired in place of the rules before the merger`() {
        var made = chain(3, staleFor: .seconds(60))
        let over = [made.rules[1], made.rules[2]]
        expectMerged(&made, now: begin)
        let merged = made.rules.filter { !over.contains($0) }
        #expect(merged.count == 1)
        made.retire(over, clock: begin)
        #expect(made.rules == merged)
    }

    @Test func `only rules covered by a later rule in force are dropped`() {
        var made = rules([
            (.remove, .prefix("a/b")), (.expire(staleFor: nil), .prefix("a/c")), (.remove, .tagged("t")),
            (.remove, .prefix("a")), (.expire(staleFor: nil), .all),
        ])
        var early = made
        early.dropSuperfluous(upTo: made.rules[3].number - 1)
        #expect(early == made, "the one that covers them is not in force")
        made.dropSuperfluous(upTo: .max)
        #expect(made.rules.map(\.selection) == [.tagged("t"), .prefix("a"), .all])
    }
}

extension Array {
    /// The two elements of an array of two.
    fileprivate var pair: (Element, Element) { (self[0], self[1]) }
}
