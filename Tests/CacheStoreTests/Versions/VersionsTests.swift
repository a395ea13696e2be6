// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@testable import CacheStore

/// The order of changes on several machines, as one machine keeps it.
@Suite(.takesTurns) struct VersionsTests {
    private let fixture: StoreFixture
    private var store: Store { fixture.store }
    private let key = Digest(ofKey: "key")

    init() throws {
        fixture = try StoreFixture()
        store.noteChanges(true)
    }

    /// Returns the version of the entry of `key`.
    private func version(of key: String = "key", in store: Store? = nil) throws -> ChangeVersion {
        let stored = try (store ?? fixture.store).entries.read(Digest(ofKey: key))
        return try #require(stored?.record?.storedVersion)
    }

    /// Takes a value with this version from a server; returns false if it is refused.
    private func take(_ version: ChangeVersion, in other: Store? = nil) throws -> Bool {
        let store = other ?? fixture.store
        let absence = try #require(try store.absence(of: key, now: .now))
        var record = fixture.record("theirs")
        record.version = version
        let bytes = Array("theirs".utf8)
        return try store.adopt(bytes.span, for: key, record, since: absence, now: .now, SpaceWait()).isWritten
    }

    private func earlier(_ version: ChangeVersion) -> ChangeVersion {
        ChangeVersion(rawValue: version.rawValue - 1)
    }

    private func evict(_ name: String = "key") throws {
        let stored = try #require(try store.entries.read(Digest(ofKey: name)))
        #expect(try store.deleteEntry(Digest(ofKey: name), ifStill: stored.bytes))
    }

    // MARK: Clock

    @Test func `a directory that has never used remote stores draws no versions`() throws {
        let fixture = try StoreFixture()
        try fixture.put("value", "key")
        #expect(try fixture.store.entries.read(key)?.record?.storedVersion == nil)
        #expect(try fixture.store.remove(key))
        #expect(!FileManager.default.fileExists(atPath: fixture.path + "/versions"))
        #expect(!fixture.store.versions.areInUse)
    }

    @Test func `each change has a later version than all changes before, in all processes`() throws {
        let stores = try [store] + (0..<2).map { _ in try StoreFixture.open(fixture.path) }
        let drawn = Locked<[[ChangeVersion]]>([])
        onThreads(stores.count) { index in
            var versions: [ChangeVersion] = []
            for number in 0..<300 {
                let key = Digest(ofKey: "key \(number % 7)")
                let bytes = Array("\(index) \(number)".utf8)
                let record = Record(content: Content(of: bytes.span), created: .now)
                do {
                    try stores[index].put(bytes.span, for: key, record)
                    let lock = try stores[index].entries.stripes.lock(.exclusive, stripe: key.stripe)
                    let stored = try stores[index].entries.read(key)
                    if let version = stored?.record?.storedVersion { versions.append(version) }
                    if let version = try stores[index].versions.draw(under: lock) { versions.append(version) }
                } catch {
                    Issue.record(error)
                }
            }
            let own = versions
            drawn.withLock { $0.append(own) }
        }
        let all = drawn.withLock { $0 }
        #expect(all.count == 3 && all.allSatisfy { $0.count == 600 })
        // Each drawn version is later than the version read before it.
        for versions in all {
            for place in stride(from: 0, to: versions.count, by: 2) {
                #expect(versions[place + 1] > versions[place])
            }
        }
        let own = all.flatMap { versions in stride(from: 1, to: versions.count, by: 2).map { versions[$0] } }
        #expect(Set(own).count == own.count)
    }

    @Test func `a removal and the next put are later than a version from a clock that is ahead`() throws {
        let ahead = ChangeVersion(at: .now + .seconds(1800), machine: 5)
        #expect(store.versions.isInTime(ahead))
        #expect(try take(ahead))
        #expect(try version() == ahead)
        try fixture.put("ours", "key")
        #expect(try version() > ahead)
        #expect(!store.versions.isInTime(ChangeVersion(at: .now + .seconds(7200), machine: 5)))
    }

    @Test func `the clock goes on if the control file is lost`() throws {
        let ahead = ChangeVersion(at: .now + .seconds(1800), machine: 5)
        #expect(try take(ahead))
        try fixture.put("ours", "key")
        let before = try version()
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let other = try StoreFixture.open(fixture.path)
        try other.put(Array("new".utf8).span, for: key, fixture.record("new"))
        #expect(try version(in: other) > before)
    }

    @Test func `the limit of the clock is written every ten seconds, not with each change`() throws {
        for number in 0..<100 { try fixture.put("value \(number)", "key") }
        let bytes = try #require(FileManager.default.contents(atPath: fixture.path + "/versions"))
        let header = try #require(VersionFileHeader(Array(bytes.prefix(VersionFileHeader.byteCount))))
        #expect(header.limit > (try version()))
        #expect(header.limit.moment <= .now + .seconds(10))
        #expect(header.floor == .none, "all values of servers may be taken")
    }

    @Test func `values that were stored before have earlier versions, even from a clock that was ahead`()
        throws
    {
        let fixture = try StoreFixture()
        let bytes = Array("value".utf8)
        let record = Record(content: Content(of: bytes.span), created: .now + .seconds(50))
        try fixture.store.put(bytes.span, for: key, record)
        let before = try #require(try fixture.store.entries.read(key)?.record).version
        fixture.store.noteChanges(true)
        try fixture.put("new", "key")
        #expect(try version(in: fixture.store) > before)
    }

    @Test func `the file is used although a stopped process holds its lock`() throws {
        #expect(try !store.remove(key))
        let cleared = store.versions.cleared
        let lock = try FileDescriptor(opening: fixture.path + "/versions", .readOnly)
        #expect(try lock.tryLock(.exclusive))
        let other = try StoreFixture.open(fixture.path)
        let present = ChangeVersion(at: .now, machine: 5)
        #expect(try other.remove(Digest(ofKey: "other")) == false)
        #expect(other.versions.cleared == cleared)
        #expect(try !take(present) || present > cleared)
        lock.close()
    }

    @Test func `a removal of another machine invalidates a value in memory whose entry was evicted`() throws {
        try fixture.put("value", "key")
        let generation = try #require(store.control.generation(of: key))
        try evict()
        #expect(store.control.isCurrent(generation) == true)
        let removal = ChangeVersion(at: .now + .seconds(60), machine: 5)
        try store.takeRemoval(removal, of: key)
        #expect(store.control.isCurrent(generation) == false)
        // The second time there is nothing to do.
        let later = try #require(store.control.generation(of: key))
        try store.takeRemoval(removal, of: key)
        #expect(store.control.isCurrent(later) == true)
    }

    // MARK: Without a control file

    @Test func `a value that was removed without a control file does not return`() throws {
        let theirs = ChangeVersion(at: .now, machine: 5)
        #expect(try take(theirs))
        store.control.giveUp()
        #expect(store.control.words == nil)
        #expect(try store.remove(key))
        let other = try StoreFixture.open(fixture.path)
        #expect(try !take(theirs, in: other))
        #expect(try take(ChangeVersion(at: .now + .seconds(60), machine: 5), in: other))
    }

    @Test func `no change that was made without a control file is undone by an older value`() throws {
        // A clock that is behind: neither the limit nor a change says what the time is.
        var options = StoreOptions()
        options.accessGranularity = .zero
        options.clock = { .now + .seconds(-3000) }
        let path = fixture.directory.path + "/behind"
        let behind = try Store(at: path, options: options)
        behind.noteChanges(true)
        let text = Array("ours".utf8)
        try behind.put(text.span, for: key, fixture.record("ours"))
        behind.control.giveUp()
        for _ in 0..<2 { _ = try behind.remove(key) }
        let theirs = ChangeVersion(at: .now, machine: 5)
        #expect(try !take(theirs, in: StoreFixture.open(path)))
        #expect(try take(ChangeVersion(at: .now + .seconds(60), machine: 5), in: StoreFixture.open(path)))
    }

    @Test func `changes without a control file do not move the clock`() throws {
        func header() throws -> VersionFileHeader? {
            let bytes = FileManager.default.contents(atPath: fixture.path + "/versions") ?? Data()
            return VersionFileHeader([UInt8](bytes.prefix(VersionFileHeader.byteCount)))
        }
        store.control.giveUp()
        #expect(try store.remove(key) == false)
        let first = try #require(try header())
        #expect(first.hasUnversioned)
        for _ in 0..<100 {
            let other = Versions(in: store.control, counters: store.counters) { .now }
            other.noteUnversioned()
        }
        #expect(try header() == first)
        let other = try StoreFixture.open(fixture.path)
        #expect(try !other.remove(key))
        let last = try #require(try header())
        #expect(!last.hasUnversioned && last.limit <= ChangeVersion(at: .now + .seconds(60), machine: .max))
    }

    @Test func `a change that began before the first use of remote stores is not undone`() throws {
        let plain = try StoreFixture()
        let lock = try plain.store.entries.stripes.lock(.shared, stripe: key.stripe)
        plain.store.noteChanges(true)
        let theirs = ChangeVersion(at: .now, machine: 5)
        #expect(try plain.store.versions.draw(under: lock) == nil)
        lock.release()
        #expect(try !take(theirs, in: plain.store))
    }

    @Test(arguments: [false, true])
    func `values removed by one call without a control file do not return`(isLost: Bool) throws {
        let theirs = ChangeVersion(at: .now, machine: 5)
        #expect(try take(theirs))
        store.control.giveUp()
        if isLost { try FileManager.default.removeItem(atPath: fixture.path + "/control") }
        store.versions.refuseOlder()
        #expect(try store.deleteEntry(key, ifStill: #require(try store.entries.read(key)).bytes))
        #expect(try !take(theirs, in: StoreFixture.open(fixture.path)))
    }

    @Test func `a new control file takes the limits that were changed while it was made`() throws {
        #expect(try take(ChangeVersion(at: .now + .seconds(1800), machine: 5)))
        store.versions.refuseOlder()
        let (clock, cleared) = (try version(), store.versions.cleared)
        let words = try #require(store.control.words)
        // As its creator found them before that.
        words.store(ChangeVersion(at: .now, machine: 5).rawValue, at: .clock)
        words.store(0, at: .cleared)
        words.store(ControlState.forming.rawValue, at: .state)
        let other = try StoreFixture.open(fixture.path)
        #expect(other.control.file?.state == .ready)
        #expect(other.versions.cleared == cleared && words.load(.clock) >= clock.rawValue)
    }

    @Test func `an older value does not replace one that a rule has removed`() throws {
        try fixture.put("ours", "key")
        let value = try version()
        #expect(try store.control.enact(.remove, .all, now: .now) == .done)
        #expect(try fixture.get("key") == nil)
        #expect(try !take(earlier(value)))
        #expect(try !take(value))
        #expect(try take(ChangeVersion(at: .now + .seconds(60), machine: 5)))
    }

    // MARK: Memory

    @Test func `a removed value does not return, and a later one is taken`() throws {
        try fixture.put("ours", "key")
        let value = try version()
        #expect(try store.remove(key))
        #expect(try !take(value))
        #expect(try fixture.get("key") == nil)
        #expect(try take(ChangeVersion(at: .now + .seconds(1), machine: 5)))
        #expect(try fixture.get("key") == "theirs")
    }

    @Test func `a removal of a key without an entry keeps older values away`() throws {
        let before = ChangeVersion(at: .now, machine: 5)
        #expect(try !store.remove(key))
        #expect(try !take(before))
    }

    @Test func `a value for the memory of a process keeps older values away`() throws {
        let before = ChangeVersion(at: .now, machine: 5)
        _ = try store.vacate(key)
        #expect(try !take(before))
    }

    @Test func `a value that was removed while no server was used does not return`() throws {
        let before = ChangeVersion(at: .now, machine: 5)
        store.noteChanges(false)
        #expect(try !store.remove(key))
        #expect(try !take(before))
    }

    @Test func `an evicted value may be taken again, but no older one`() throws {
        try fixture.put("ours", "key")
        let value = try version()
        try evict()
        #expect(try !take(earlier(value)))
        #expect(try take(value))
    }

    @Test(arguments: ["evicted", "evicted from the list", "expired"])
    func `collections remember the versions of the entries that they delete`(way: String) throws {
        let now = Timestamp.now
        try fixture.put("ours", "key", expires: now + .seconds(1000))
        let value = try version()
        switch way {
        case "expired": try fixture.sweep(now: now + .seconds(2000))
        case "evicted from the list":
            try fixture.sweep { $0.limits.maximumEntries = 1000 }
            #expect(try ListedEviction.run(Excess(entries: 1), on: store, now: .now)?.removedInAll.count == 1)
        default: try fixture.sweep { $0.limits.maximumEntries = 0 }
        }
        #expect(try store.entries.read(key) == nil)
        #expect(try !take(earlier(value)))
        #expect(try take(value))
    }

    @Test func `an expired entry is not replaced by an older value`() throws {
        try fixture.put("ours", "key", expires: .now)
        let value = try version()
        #expect(try !take(earlier(value)))
        #expect(try take(ChangeVersion(at: .now + .seconds(1), machine: 5)))
    }

    @Test func `a value that could not be stored keeps older values away`() throws {
        try fixture.put("ours", "key", expires: .now)
        let absence = try #require(try store.absence(of: key, now: .now))
        var record = fixture.record("theirs")
        record.version = ChangeVersion(at: .now + .seconds(1), machine: 5)
        #expect(try store.mayReturnUnstored(record, for: key, since: absence))
        #expect(try store.entries.read(key) == nil)
        #expect(try !take(earlier(record.version)))
        #expect(try take(record.version))
        let later = try StoreFixture()
        later.store.noteChanges(true)
        #expect(try !later.store.remove(key))
        let removed = try #require(later.store.control.generation(of: key))
        let newer = try #require(try later.store.absence(of: key, now: .now))
        #expect(try later.store.mayReturnUnstored(record, for: key, since: newer))
        // Processes may have an older value in memory.
        #expect(later.store.control.isCurrent(removed) == false)
        let again = try #require(try later.store.absence(of: key, now: .now))
        #expect(try later.store.mayReturnUnstored(record, for: key, since: again))
        #expect(later.store.control.isCurrent(again.generation) == true)
        let absent = try #require(try later.store.absence(of: key, now: .now))
        record.version = ChangeVersion(at: .now + .seconds(-1), machine: 5)
        #expect(try !later.store.mayReturnUnstored(record, for: key, since: absent))
    }

    // MARK: Lost files

    @Test func `if the file is lost, nothing older than the loss is taken`() throws {
        let before = ChangeVersion(at: .now, machine: 5)
        _ = try store.remove(key)
        try FileManager.default.removeItem(atPath: fixture.path + "/versions")
        #expect(try !take(before))
        let (version, isExact) = try store.versions.latest(
            of: key,
            under: try store.entries.stripes.lock(.exclusive, stripe: key.stripe)
        )
        #expect(!isExact && version > before)
        #expect(try take(ChangeVersion(at: .now + .seconds(60), machine: 5)))
    }

    @Test(arguments: [0, 8, 31, 300, 100_000])
    func `a damaged or truncated file is emptied, and nothing older is taken`(length: Int) throws {
        let before = ChangeVersion(at: .now, machine: 5)
        _ = try store.remove(key)
        let path = fixture.path + "/versions"
        #expect(truncate(path, off_t(length)) == 0)
        let other = try StoreFixture.open(fixture.path)
        #expect(try !take(before, in: other))
        #expect(try !take(before))
        try fixture.put("ours", "key")
        let value = try version()
        #expect(value > before)
        _ = try store.remove(key)
        #expect(try !take(value, in: other))
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        #expect(size == VersionFileLayout.byteCount)
    }

    @Test func `garbage in the place of the header is replaced`() throws {
        let before = ChangeVersion(at: .now, machine: 5)
        _ = try store.remove(key)
        try fixture.damage(fixture.path + "/versions", [UInt8](repeating: 7, count: 32))
        let other = try StoreFixture.open(fixture.path)
        #expect(try !take(before, in: other))
        #expect(try !other.remove(key))
    }

    @Test func `if both files are lost, no version so far is taken`() throws {
        let ahead = ChangeVersion(at: .now + .seconds(1800), machine: 5)
        #expect(try take(ahead))
        try fixture.put("ours", "key")
        let value = try version()
        _ = try store.remove(key)
        for name in ["versions", "control"] {
            try FileManager.default.removeItem(atPath: fixture.path + "/" + name)
        }
        let other = try StoreFixture.open(fixture.path)
        #expect(try !take(value, in: other))
        try other.put(Array("new".utf8).span, for: key, fixture.record("new"))
        #expect(try version(in: other) > value)
    }

    @Test func `a removal succeeds if the file can't be used, and older values are refused all the same`()
        throws
    {
        let path = fixture.path + "/versions"
        try fixture.put("ours", "key")
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        let value = try version()
        #expect(try store.remove(key))
        #expect(store.versions.cleared > value)
        #expect(store.counters[.controlFailure] > 0)
    }

    @Test func `after a removal of all values, also before the first use of servers, no older one is taken`()
        throws
    {
        let before = ChangeVersion(at: .now, machine: 5)
        let fresh = try StoreFixture()
        for store in [store, fresh.store] {
            #expect(store.enact(.remove, .all, now: .now))
            store.noteChanges(true)
            #expect(try !take(before, in: store))
            #expect(try take(ChangeVersion(at: .now + .seconds(1), machine: 5), in: store))
        }
        // This outlives the rule and the control file.
        try fixture.sweep()
        try FileManager.default.removeItem(atPath: fixture.path + "/control")
        let other = try StoreFixture.open(fixture.path)
        #expect(other.versions.cleared > before)
    }

    @Test func `a removal of another machine is remembered once, and deletes an older entry`() throws {
        try fixture.put("ours", "key", expires: .now)
        let value = try version()
        let removal = ChangeVersion(at: .now + .seconds(1), machine: 5)
        try store.takeRemoval(earlier(value), of: key)
        #expect(try store.entries.read(key) != nil, "the entry is newer")
        for _ in 0..<2 { try store.takeRemoval(removal, of: key) }
        #expect(try store.entries.read(key) == nil)
        #expect(try store.removedVersion(of: key) == removal)
        #expect(try !take(earlier(removal)))
        try fixture.put("new", "key")
        #expect(try version() > removal)
    }

    @Test func `two processes that find no file use the same one`() throws {
        let path = fixture.path + "/versions"
        for round in 0..<20 {
            try FileManager.default.removeItem(atPath: path)
            let stores = try (0..<3).map { _ in try StoreFixture.open(fixture.path) }
            let before = ChangeVersion(at: .now, machine: 5)
            onThreads(stores.count) { index in
                do {
                    for number in 0..<5 {
                        _ = try stores[index].remove(Digest(ofKey: "\(round) \(index) \(number)"))
                    }
                } catch {
                    Issue.record(error)
                }
            }
            for index in stores.indices {
                for number in 0..<5 {
                    let key = Digest(ofKey: "\(round) \(index) \(number)")
                    let lock = try store.entries.stripes.lock(.exclusive, stripe: key.stripe)
                    #expect(try store.versions.latest(of: key, under: lock).version > before)
                }
            }
        }
    }
}
