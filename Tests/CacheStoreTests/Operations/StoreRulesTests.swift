// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// Rules as seen by two stores on one directory, which behave like two processes.
@Suite(.takesTurns) struct StoreRulesTests {
    private let fixture: StoreFixture
    private let other: Store
    private var store: Store { fixture.store }
    private var control: Control { fixture.store.control }

    init() throws {
        fixture = try StoreFixture()
        other = try StoreFixture.open(fixture.path)
    }

    private func get(
        _ key: String,
        in store: Store,
        now: Timestamp = .now,
        stale: Bool = false
    ) throws -> String? {
        try store.get(Digest(ofKey: key), now: now, allowingStale: stale)
            .map { String(decoding: $0.value, as: UTF8.self) }
    }

    private func put(
        _ value: String,
        _ key: String,
        in store: Store,
        created: Timestamp = .now,
        _ change: (inout Record) -> Void = { _ in }
    ) throws {
        var record = fixture.record(value, created: created)
        record.key = key
        change(&record)
        try store.put(Array(value.utf8).span, for: Digest(ofKey: key), record)
    }

    private var rulesInFile: Int {
        get throws {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: fixture.path + "/rules"))
            return try #require(RemovalRules([UInt8](bytes))).rules.count
        }
    }

    // MARK: Removal

    @Test(arguments: RecordForm.both)
    func `a rule removes its entries for all stores, and no others`(
        form: RecordForm
    ) throws {
        let fixture = try StoreFixture(form)
        let other = try StoreFixture.open(fixture.path, form)
        for key in ["a/1", "a/2", "b/1"] { try put(key, key, in: fixture.store) }
        // The store now knows the record, and the generation with which the value could be held.
        let hit = try #require(try other.get(Digest(ofKey: "a/1"), now: .now, allowingStale: false))
        let generation = try #require(hit.entry.generation)
        let files = fixture.entries.count
        #expect(fixture.store.enact(.remove, .prefix("a/"), now: .now))
        #expect(other.isCurrent(generation) == false)
        for store in [fixture.store, other, try StoreFixture.open(fixture.path, form)] {
            #expect(try get("a/1", in: store) == nil && get("a/2", in: store) == nil)
            #expect(try get("b/1", in: store) == "b/1")
            #expect(try store.liveEntry(Digest(ofKey: "a/1"), now: .now, allowingStale: true) == nil)
        }
        #expect(fixture.entries.count == files, "nothing was looked for")
        let report = try fixture.sweep()
        #expect(report.removed[.cleared]?.count == 2 && report.entries.count == 1)
        #expect(fixture.entries.count == 1 && fixture.objects.count == 1)
        #expect(fixture.store.control.rulesVersion == 0, "nothing is left to be done for it")
        #expect(try get("b/1", in: other) == "b/1" && get("a/1", in: other) == nil)
        let counts = try #require(fixture.store.cumulative)
        #expect(counts[.sweptCleared] == 2 && counts[.removalRule] == 1)
    }

    @Test
    func `values stored after a rule stay, even with a clock that was set back`()
        throws
    {
        let now = Timestamp.now
        try put("old", "key", in: store, created: now)
        #expect(store.enact(.remove, .all, now: now))
        for created in [now, now - .seconds(3600)] {
            try put("new", "key", in: other, created: created)
            for store in [store, other] { #expect(try get("key", in: store, now: now) == "new") }
            try put("newer", "key", in: store, created: created)
            for store in [store, other] { #expect(try get("key", in: store, now: now) == "newer") }
        }
        #expect(store.enact(.remove, .all, now: now - .seconds(7200)))
        for store in [store, other] { #expect(try get("key", in: store, now: now) == nil) }
    }

    @Test func `a rule also removes values stored by a clock that runs ahead`() throws {
        let now = Timestamp.now
        try put("early", "key", in: other, created: now + .seconds(3600))
        #expect(store.enact(.remove, .all, now: now))
        for store in [store, other] { #expect(try get("key", in: store, now: now) == nil) }
        try put("new", "key", in: store, created: now)
        for store in [store, other] { #expect(try get("key", in: store, now: now) == "new") }
    }

    @Test func `replacing or removing an entry that a rule has removed in between is a conflict`() throws {
        try put("old", "key", in: store) { $0.staleFor = .seconds(60) }
        let (key, bytes) = (Digest(ofKey: "key"), Array("new".utf8))
        for effect in [RemovalRule.Effect.expire(staleFor: nil), .remove] {
            let observed = try store.observe(key, now: .now)
            let live = try #require(try store.liveEntry(key, now: .now, allowingStale: true))
            #expect(other.enact(effect, .all, now: .now))
            let outcome = try store.put(bytes.span, for: key, fixture.record("new"), ifStill: observed.stored)
            #expect(outcome == .conflict)
            #expect(try store.rewrite(live.record, for: key, ifStill: live.stored, now: .now) == .conflict)
            #expect(try !store.remove(key, ifStill: live.stored))
        }
        let observed = try store.observe(key, now: .now)
        #expect(observed.stored == nil && observed.value == nil)
        let outcome = try store.put(bytes.span, for: key, fixture.record("new"), ifStill: nil)
        #expect(outcome.isWritten)
        #expect(try get("key", in: other) == "new")
    }

    @Test(arguments: [RemovalRule.Effect.remove, .expire(staleFor: nil)])
    func `a value put after a rule stays although an earlier put is slow`(effect: RemovalRule.Effect)
        throws
    {
        try put("old", "key", in: store)
        let (isWriting, mayWrite) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let done = DispatchSemaphore(value: 0)
        let isFirst = Locked<Bool>.Box(true)
        Thread.detachNewThread {
            SystemCall.withFaults { call in
                // The put has read the rules and is about to write the record.
                guard call == .setAttribute, isFirst.value.withLock({ exchange(&$0, with: false) }) else {
                    return nil
                }
                isWriting.signal()
                mayWrite.wait()
                return nil
            } _: {
                try? self.put("slow", "key", in: self.store)
            }
            done.signal()
        }
        isWriting.wait()
        #expect(store.enact(effect, .all, now: .now))
        let (tries, isStored) = (Locked<Int>.Box(0), Locked<Bool>.Box(false))
        Thread.detachNewThread {
            SystemCall.withFaults { call in
                if call == .lock { tries.value.withLock { $0 += 1 } }
                return nil
            } _: {
                try? self.put("new", "key", in: self.other)
            }
            isStored.value.withLock { $0 = true }
            done.signal()
        }
        // A put takes two locks, and retries while it waits.
        waitUntil("it is stored, or waits for the other") {
            isStored.value.withLock { $0 } || tries.value.withLock { $0 > 4 }
        }
        mayWrite.signal()
        for _ in 0..<2 { done.wait() }
        for store in [store, other] { #expect(try get("key", in: store) == "new") }
        try fixture.sweep()
        for store in [store, other] { #expect(try get("key", in: store) == "new") }
    }

    // MARK: Expiration

    @Test func `a rule makes entries stale for its period and is then deleted`()
        throws
    {
        let now = Timestamp.now
        try put("value", "a", in: store, created: now)
        try put("other", "b", in: store, created: now)
        #expect(store.enact(.expire(staleFor: .seconds(60)), .prefix("a"), now: now))
        for store in [store, other] {
            #expect(try get("a", in: store, now: now) == nil)
            #expect(try get("a", in: store, now: now, stale: true) == "value")
            #expect(try get("a", in: store, now: now + .seconds(59), stale: true) == "value")
            #expect(try get("a", in: store, now: now + .seconds(60), stale: true) == nil)
            #expect(try get("b", in: store, now: now + .seconds(60)) == "other")
        }
        try fixture.sweep(now: now + .seconds(30))
        #expect(try rulesInFile == 1 && get("a", in: other, now: now, stale: true) == "value")
        let report = try fixture.sweep(now: now + .seconds(61))
        #expect(report.removed[.expired]?.count == 1)
        #expect(try rulesInFile == 0 && control.rulesVersion == 0)
    }

    @Test func `a rewrite renews a value that a rule has expired`() throws {
        let now = Timestamp.now
        try put("value", "key", in: store, created: now)
        #expect(store.enact(.expire(staleFor: .seconds(60)), .all, now: now))
        let live = try #require(try other.liveEntry(Digest(ofKey: "key"), now: now, allowingStale: true))
        #expect(live.isStale)
        var record = live.record
        record.expires = now + .seconds(1000)
        #expect(
            try other.rewrite(record, for: Digest(ofKey: "key"), ifStill: live.stored, now: now).isWritten
        )
        for store in [store, other] {
            #expect(try get("key", in: store, now: now + .seconds(999)) == "value")
        }
    }

    @Test func `a single entry can be expired without a rule`() throws {
        let now = Timestamp.now
        try put("value", "key", in: store, created: now)
        let key = Digest(ofKey: "key")
        #expect(try store.expire(key, staleFor: .seconds(60), now: now + .seconds(1)) { _ in false })
        #expect(try get("key", in: other, now: now + .seconds(2)) == "value")
        #expect(try store.expire(key, staleFor: .seconds(60), now: now + .seconds(1)) { _ in true })
        #expect(try get("key", in: other, now: now + .seconds(2)) == nil)
        #expect(try get("key", in: other, now: now + .seconds(2), stale: true) == "value")
    }

    // MARK: The rules file

    @Test func `with damaged rules all reads miss until a sweep has removed everything`() throws {
        try put("value", "key", in: store)
        #expect(store.enact(.remove, .prefix("other"), now: .now))
        #expect(try get("key", in: store) == "value")
        makeFile(fixture.path + "/rules", "rules 1\nversion 7\ncheck 0\n")
        let third = try StoreFixture.open(fixture.path)
        #expect(try get("key", in: third) == nil)
        #expect(third.cumulative?[.corruptRecord] == 1)
        #expect(try fixture.sweep { $0.isDryRun = true }.removed.isEmpty)
        // A store that has read the rules continues to apply them.
        #expect(try get("key", in: store) == "value")
        _ = try Sweep.run(SweepRequest(), on: third, now: .now)
        for store in [store, other, third] { #expect(try get("key", in: store) == nil) }
        try put("new", "key", in: other)
        for store in [store, other, third] { #expect(try get("key", in: store) == "new") }
        #expect(try fixture.sweep().entries.count == 1)
    }

    @Test(arguments: [Errno.accessDenied, .notPermitted, .inputOutput])
    func `rules that a process cannot read cause an error and remove nothing`(error: Errno) throws {
        try put("value", "key", in: store)
        #expect(store.enact(.remove, .prefix("other"), now: .now))
        // A store that has not read the rules file opens it first.
        func refusingFirstOpen<Result>(_ body: () throws -> Result) throws -> Result {
            let isFirst = Locked(true)
            return try SystemCall.withFaults(
                { call in
                    guard call == .open, isFirst.withLock({ exchange(&$0, with: false) }) else { return nil }
                    return .error(error)
                },
                body
            )
        }
        let failure = #expect(throws: CacheError.self) {
            try refusingFirstOpen { try get("key", in: other) }
        }
        #expect(failure?.path == fixture.path + "/rules")
        #expect(other.counters[.corruptRecord] == 0)
        #expect(try get("key", in: other) == "value")
    }

    /// Enacts a rule that applies to none of the values, and hides its file.
    private func hideRules() throws {
        for key in ["a", "b", "c"] { try put(key, key, in: store) }
        #expect(store.enact(.remove, .prefix("other"), now: .now))
        #expect(rename(fixture.path + "/rules", fixture.path + "/hidden") == 0)
    }

    private func restoreRules() throws {
        _ = rmdir(fixture.path + "/rules")
        #expect(rename(fixture.path + "/hidden", fixture.path + "/rules") == 0)
        for key in ["a", "b", "c"] { #expect(try get(key, in: store) == key) }
        #expect(try Verification.run(on: other, isRepairing: false).isClean)
    }

    @Test(arguments: [false, true])
    func `a verification reports unreadable rules and repairs no entry because of them`(isRepairing: Bool)
        throws
    {
        try hideRules()
        let third = try StoreFixture.open(fixture.path)
        let report = try Verification.run(on: third, isRepairing: isRepairing)
        #expect(report.unreadable == ["rules"] && !report.isClean)
        #expect(report.corruptEntryCount == 0 && report.repaired == 0 && report.entries == 3)
        #expect(fixture.entries.count == 3)
        try restoreRules()
    }

    @Test func `a collection completes with a directory in place of the rules`()
        throws
    {
        try put("old", "over", in: store, created: .now - .seconds(100))
        try hideRules()
        try FileManager.default.createDirectory(
            atPath: fixture.path + "/rules",
            withIntermediateDirectories: false
        )
        let third = try StoreFixture.open(fixture.path)
        var request = SweepRequest()
        request.limits.maximumAge = .seconds(50)
        let report = try Sweep.run(request, on: third, now: .now)
        #expect(report.unreadable == ["rules"] && report.isComplete)
        #expect(report.removed.keys.allSatisfy { $0 == .age || $0 == .orphan })
        #expect(report.removed[.age]?.count == 1 && report.entries.count == 3)
        try restoreRules()
    }

    @Test(arguments: [.accessDenied, .inputOutput] as [Errno])
    func `a collection that cannot read the rules completes without applying them`(error: Errno) throws {
        try put("old", "over", in: store, created: .now - .seconds(100))
        for key in ["a", "b", "c"] { try put(key, key, in: store) }
        #expect(store.enact(.remove, .prefix("other"), now: .now))
        let third = try StoreFixture.open(fixture.path)
        var request = SweepRequest()
        request.limits.maximumAge = .seconds(50)
        // The rules are the second file that a sweep opens, after its lock.
        let opened = Locked(0)
        let report = try SystemCall.withFaults(
            { call in
                guard call == .open else { return nil }
                opened.withLock { $0 += 1 }
                return opened.withLock { $0 == 2 } ? .error(error) : nil
            },
            { try Sweep.run(request, on: third, now: .now) }
        )
        #expect(report.unreadable == ["rules"] && report.isComplete)
        #expect(report.removed[.age]?.count == 1 && report.entries.count == 3)
        for key in ["a", "b", "c"] { #expect(try get(key, in: store) == key) }
    }

    @Test func `a process that cannot read the rules creates no control file`() throws {
        try put("value", "key", in: store)
        #expect(store.enact(.remove, .prefix("other"), now: .now))
        let third = try StoreFixture.open(fixture.path)
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let rules = fixture.path + "/rules"
        let identity = try FileStatus.of(rules).identity
        #expect(throws: CacheError.self) {
            try SystemCall.withFaults({ call in call == .read ? .error(.inputOutput) : nil }) {
                try third.control.prepare { _ in [] }
            }
        }
        #expect(!FileManager.default.fileExists(atPath: fixture.path + "/control"))
        #expect(try FileStatus.of(rules).identity == identity)
    }

    @Test(arguments: [1, .max, 1 << 63, 1 << 62 + 1] as [UInt64])
    func `a sweep resets an invalid rules version in the control file`(
        number: UInt64
    ) throws {
        try put("value", "key", in: store)
        try #require(control.writableWords).store(number, at: .rulesVersion)
        #expect(try get("key", in: store) == nil)
        try fixture.sweep()
        try put("new", "key", in: other)
        for store in [store, other] { #expect(try get("key", in: store) == "new") }
        #expect(store.enact(.remove, .all, now: .now))
        for store in [store, other] { #expect(try get("key", in: store) == nil) }
    }

    @Test func `the next rule compensates for a missing or outdated rules file`() throws {
        try put("value", "a", in: store)
        #expect(store.enact(.remove, .prefix("b"), now: .now))
        try FileManager.default.removeItem(atPath: fixture.path + "/rules")
        let third = try StoreFixture.open(fixture.path)
        #expect(try get("a", in: third) == nil)
        #expect(third.enact(.remove, .prefix("c"), now: .now))
        for store in [store, other, third] { #expect(try get("a", in: store) == nil) }
        try put("new", "a", in: other)
        for store in [store, other, third] { #expect(try get("a", in: store) == "new") }
    }

    @Test func `a recreated control file knows the rules and accepts new ones after a sweep`() throws {
        try put("value", "key", in: store)
        #expect(store.enact(.remove, .all, now: .now))
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let third = try StoreFixture.open(fixture.path)
        #expect(third.control.rulesVersion != 0)
        #expect(try get("key", in: third) == nil)
        try put("new", "key", in: third)
        #expect(!third.enact(.remove, .all, now: .now), "there may be entries of any time")
        #expect(try get("key", in: third) == "new")
        _ = try Sweep.run(SweepRequest(), on: third, now: .now)
        #expect(third.enact(.remove, .all, now: .now))
        #expect(try get("key", in: third) == nil)
    }

    @Test func `no rule can be enacted if a control file is impossible`()
        throws
    {
        let remote = Capabilities(attributes: .writable, unnamedFiles: true, sharedMapping: .none)
        let fixture = try StoreFixture(assuming: remote)
        try put("value", "key", in: fixture.store)
        #expect(!fixture.store.enact(.remove, .all, now: .now))
        #expect(try get("key", in: fixture.store) == "value")
        #expect(!FileManager.default.fileExists(atPath: fixture.path + "/rules"))
    }

    @Test func `rules hold if a control file has become impossible, and a sweep removes them`() throws {
        try put("gone", "gone", in: store) { $0.details.tags = ["tag"] }
        try put("kept", "kept", in: store)
        try put("stale", "stale", in: store) { $0.details.tags = ["old"] }
        #expect(store.enact(.remove, .tagged("tag"), now: .now))
        #expect(store.enact(.expire(staleFor: .seconds(60)), .tagged("old"), now: .now))
        let blind = Capabilities(attributes: .writable, unnamedFiles: true, sharedMapping: .none)
        let later = try StoreFixture.open(fixture.path, .attribute, .zero, blind)
        #expect(later.control.isImpossible)
        #expect(try get("gone", in: later) == nil && get("kept", in: later) == "kept")
        #expect(try get("stale", in: later) == nil && get("stale", in: later, stale: true) == "stale")
        let report = try Sweep.run(SweepRequest(), on: later, now: .now)
        #expect(report.removed[.cleared]?.count == 1)
        #expect(try rulesInFile == 1, "the stale value's rule stays")
        _ = try Sweep.run(SweepRequest(), on: later, now: .now + .seconds(61))
        #expect(try rulesInFile == 0)
        #expect(try get("kept", in: store) == "kept", "the control file still has the rules' number")
    }

    @Test func `if a control file is impossible, a damaged rules file removes everything once`() throws {
        let blind = Capabilities(attributes: .writable, unnamedFiles: true, sharedMapping: .none)
        let fixture = try StoreFixture(assuming: blind)
        try fixture.put("old", "old")
        makeFile(fixture.path + "/rules", "rules 1\ndamaged")
        #expect(try fixture.get("old") == nil)
        try fixture.sweep()
        sleepThread(for: .milliseconds(2))
        try fixture.put("new", "new")
        #expect(try fixture.get("old") == nil && fixture.get("new") == "new")
        try fixture.sweep()
        #expect(try fixture.get("new") == "new")
    }

    @Test func `a sweep makes room for another rule at the maximum number of rules`() throws {
        for number in 0..<RemovalRules.most { #expect(store.enact(.remove, .tagged("\(number)"), now: .now)) }
        #expect(try rulesInFile == RemovalRules.most)
        try put("value", "key", in: store) { $0.details.tags = ["last"] }
        #expect(store.enact(.remove, .tagged("last"), now: .now))
        #expect(try rulesInFile == 1 && get("key", in: other) == nil)
        #expect(store.enact(.remove, .all, now: .now) && store.enact(.remove, .all, now: .now))
        #expect(try rulesInFile == 2, "what it covers goes with the next")
    }

    @Test
    func `any number of tags can expire, and stale values stay for their full period`()
        throws
    {
        let begin = Timestamp.now - .seconds(3600)
        let count = RemovalRules.most + 3
        for number in 0..<count {
            try put("\(number)", "\(number)", in: store, created: begin) {
                $0.details.tags = ["tag \(number)"]
            }
            _ = try store.entries.setAccessTime(
                of: Digest(ofKey: "\(number)"),
                to: begin + .seconds(number)
            )
        }
        for number in 0..<count {
            let now = begin + .seconds(1000 + number)
            #expect(
                store.enact(.expire(staleFor: .seconds(500)), .tagged("tag \(number)"), now: now),
                "\(number)"
            )
        }
        #expect(try rulesInFile == 3)
        for number in 0..<count {
            let end = begin + .seconds(1500 + number)
            #expect(try get("\(number)", in: other, now: end - .seconds(400)) == nil)
            #expect(try get("\(number)", in: other, now: end - .seconds(1), stale: true) == "\(number)")
            #expect(try get("\(number)", in: other, now: end + .seconds(1), stale: true) == nil)
        }
    }

    @Test func `a tag can expire any number of times without a collection`() throws {
        let begin = Timestamp.now
        for number in 0..<RemovalRules.most + 20 {
            let now = begin + .seconds(number)
            try put("\(number)", "\(number)", in: store, created: now) { $0.details.tags = ["tag"] }
            #expect(store.enact(.expire(staleFor: .seconds(86400)), .tagged("tag"), now: now))
        }
        #expect(try rulesInFile == RemovalRules.most)
        #expect(store.cumulative?[.sweep] == 0)
        let now = begin + .seconds(100)
        for number in 0..<RemovalRules.most + 20 {
            for store in [store, other] {
                #expect(try get("\(number)", in: store, now: now) == nil)
                #expect(try get("\(number)", in: store, now: now, stale: true) == "\(number)")
            }
        }
    }

    @Test func `a store that reads the rules late applies the rules that replaced others`() throws {
        try put("value", "a", in: store)
        #expect(store.enact(.remove, .prefix("a"), now: .now))
        let isFirst = Locked(true)
        let maker = store
        try SystemCall.withFaults { call in
            guard call == .open, isFirst.withLock({ exchange(&$0, with: false) }) else { return nil }
            // The other store has read the version, but not the file.
            #expect(maker.enact(.remove, .all, now: .now))
            #expect(maker.enact(.remove, .tagged("t"), now: .now))
            return nil
        } _: { () throws in
            #expect(try get("a", in: other) == nil)
        }
        #expect(try rulesInFile == 2, "the first is not there any more")
    }

    @Test func `the rule of a killed process does not take effect when others are removed`() throws {
        let now = Timestamp.now
        try put("value", "key", in: store, created: now)
        #expect(store.enact(.remove, .tagged("none"), now: now))
        let hit = try #require(try store.get(Digest(ofKey: "key"), now: now, allowingStale: false))
        // As left by a process killed after it wrote the rule to the file, before the rule took effect.
        let place = fixture.path + "/rules"
        let bytes = try Data(contentsOf: URL(fileURLWithPath: place))
        var rules = try #require(RemovalRules([UInt8](bytes)))
        rules.add(.remove, .all, latest: now, at: now, clock: now)
        try Data(rules.bytes).write(to: URL(fileURLWithPath: place))
        try fixture.sweep()
        #expect(try rulesInFile == 0 && control.rulesVersion == 0)
        #expect(store.isCurrent(hit.entry.generation) == true, "nobody has raised it")
        for store in [store, other, try StoreFixture.open(fixture.path)] {
            #expect(try get("key", in: store, now: now) == "value")
        }
    }

    @Test func `the rule of a killed process does not take effect with a later rule`() throws {
        let now = Timestamp.now
        // A clock that is ahead has stored a value, so a new rule gets at least this time.
        try put("later", "later", in: store, created: now + .seconds(50))
        let place = fixture.path + "/rules"
        var rules = RemovalRules()
        rules.add(.remove, .prefix("key"), latest: now + .seconds(50), at: now, clock: now)
        try Data(rules.bytes).write(to: URL(fileURLWithPath: place))
        try put("value", "key", in: store, created: now)
        #expect(store.enact(.remove, .tagged("none"), now: now))
        #expect(try rulesInFile == 1)
        for store in [store, other, try StoreFixture.open(fixture.path)] {
            #expect(try get("key", in: store, now: now) == "value")
        }
    }

    // MARK: Sweeps

    @Test func `a dry run finds what a sweep removes, and changes nothing`() throws {
        for index in 0..<5 { try put("\(index)", "key \(index)", in: store) }
        #expect(store.enact(.remove, .prefix("key"), now: .now))
        let rehearsal = try fixture.sweep { $0.isDryRun = true }
        #expect(rehearsal.removed[.cleared]?.count == 5 && fixture.entries.count == 5)
        #expect(try rulesInFile == 1)
        let report = try fixture.sweep { $0.expiredOnly = true }
        #expect(report.removed == rehearsal.removed && fixture.entries.isEmpty && fixture.objects.isEmpty)
        #expect(try rulesInFile == 0)
    }

    @Test func `a rule stays while a stripe is held, whose lock holder may publish`() throws {
        try put("value", "key", in: store)
        #expect(store.enact(.remove, .all, now: .now))
        let digest = Digest(of: Array("another".utf8).span)
        let name = StoreLayout.lockName(.objects, digest.stripe)
        let lock = try store.directory.lock(name, patience: .zero)
        let report = try fixture.sweep { $0.stripePatience = .milliseconds(1) }
        #expect(!report.skippedStripes.isEmpty)
        #expect(try rulesInFile == 1)
        lock?.release()
        try fixture.sweep()
        #expect(try rulesInFile == 0)
    }

    @Test func `a sweep of selected keys leaves all others, and the rules for them`() throws {
        for key in ["a/1", "a/2", "b/1"] { try put(key, key, in: store, created: .now - .seconds(1000)) }
        let report = try fixture.sweep {
            $0.selection = .prefix("a/")
            $0.limits.maximumEntries = 0
        }
        #expect(report.removed[.entries]?.count == 2 && report.entries.count == 1)
        #expect(try get("b/1", in: store) == "b/1")
        #expect(SweepRecord.last(in: store.directory)?.lastFull == nil)
        #expect(store.enact(.remove, .all, now: .now))
        try fixture.sweep { $0.selection = .prefix("a/") }
        #expect(try rulesInFile == 1 && fixture.entries.count == 1)
    }

    @Test func `a control file left half-formed by a killed process is ready once it is opened`()
        throws
    {
        try put("value", "key", in: store)
        let file = try #require(control.file)
        file.setState(.forming)
        #expect(other.generation(of: Digest(ofKey: "key"))?.hasWriters == true)
        let third = try StoreFixture.open(fixture.path)
        #expect(file.state == .ready)
        #expect(try get("key", in: third) == "value")
    }
}
