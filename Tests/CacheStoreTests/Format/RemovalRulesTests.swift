// SPDX-License-Identifier: Apache-2.0

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

    @Test func `what was written is read again, whatever the texts are`() {
        let made = rules([
            (.remove, .all), (.remove, .prefix("a b/\n%20\u{1f600}")), (.expire(staleFor: nil), .tagged("")),
            (.expire(staleFor: .milliseconds(1500)), .prefix("x")), (.expire(staleFor: .zero), .all),
        ])
        #expect(RemovalRules(made.bytes) == made)
        #expect(made.rules.count == 5 && Set(made.rules.map(\.number)).count == 5)
        #expect(RemovalRules(RemovalRules().bytes) == RemovalRules())
    }

    @Test func `with any byte changed, or cut short, it is nothing`() {
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

    /// A file of version 2 whose check is right.
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
    func `a line that says nothing, or too much, makes the file none`(line: String) {
        #expect(parsed(line) == nil)
    }

    @Test func `times and spans at the end of what a number can be are taken as they are`() throws {
        let most = Int64.max
        let rules = try #require(parsed("expire 2 \(most) \(most) \(most) all"))
        let value = record(created: begin)
        #expect(rules.meant(for: value, upTo: .max).count == 1)
        #expect(try applied(rules, value)?.expires != nil)
        #expect(RemovalRules(rules.bytes) != nil)
        #expect(parsed("remove 2 0 0 all")?.meant(for: value, upTo: .max).isEmpty == true)
    }

    @Test(arguments: [.max, 1 << 63, 1 << 63 - 1, 1 << 62 + 1] as [UInt64])
    func `from any number that a word can be, counting leads to versions that are read again`(word: UInt64) {
        var rules = RemovalRules(version: word)
        rules.add(.remove, .all, latest: begin, at: begin, clock: begin)
        // One at the very end is read by nobody; what takes its place is.
        if RemovalRules(rules.bytes) == nil {
            rules = RemovalRules(version: rules.version)
            rules.add(.remove, .all, latest: begin, at: begin, clock: begin)
        }
        #expect(RemovalRules(rules.bytes) == rules)
        #expect(rules.version != word)
    }

    @Test func `numbers go with the time, and upwards in any case`() {
        var rules = RemovalRules()
        rules.add(.remove, .all, latest: begin, at: begin, clock: begin)
        #expect(rules.version == 1_700_000_000_000)
        rules.add(.remove, .all, latest: begin, at: begin, clock: begin - .seconds(10))
        #expect(rules.version == 1_700_000_000_001)
    }

    // MARK: Effects

    @Test func `a rule is meant for what was created up to its time, unless a later number is noted`() throws
    {
        let rules = rules([(.remove, .prefix("k"))])
        #expect(try applied(rules, record(created: begin)) == nil)
        #expect(try applied(rules, record(created: begin + .milliseconds(1))) != nil)
        #expect(try applied(rules, record("other", created: begin)) != nil)
        var later = record(created: begin)
        later.followedRule = rules.version
        #expect(try applied(rules, later) == later)
        let bytes = RecordCodec.encode(later, for: Digest(ofKey: "key"))
        #expect(RecordCodec.decode(bytes, for: Digest(ofKey: "key"))?.followedRule == rules.version)
        #expect(rules.meant(for: record(created: begin), upTo: rules.version - 1).isEmpty)
    }

    @Test func `what has not expired does, and is stale for as long as the rule says, or it did`() throws {
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

    @Test func `what accesses have kept alive expires, what they have not stays as it was`() throws {
        var value = record(created: begin - .seconds(100), expires: begin - .seconds(50))
        value.idleLifetime = .seconds(50)
        let rules = rules([(.expire(staleFor: .seconds(60)), .all)])
        let alive = try #require(try applied(rules, value, accessed: begin - .seconds(10)))
        #expect(alive.expires == begin && alive.idleLifetime == nil && alive.staleFor == .seconds(60))
        #expect(try applied(rules, value, accessed: begin - .seconds(60)) == value)
    }

    @Test func `of several the first that ends a value counts`() throws {
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

    @Test func `what a later rule in force removes anyway is dropped, and nothing else`() {
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
