// SPDX-License-Identifier: Apache-2.0

import CacheStore
import DiskCache
import Foundation
import Platform
import Synchronization
import TestSupport
import Testing

@testable import RemoteStore

/// Machines that share servers, which may be down or slow, or give wrong answers.
@Suite(.takesTurns) struct ServerTierTests {
    let machines: Machines
    let server = FakeClient()

    init() throws {
        machines = try Machines()
    }

    @Test func `a machine finds the value that another machine has stored, with its options`() throws {
        let (one, other) = (try machines.cache("one", server), try machines.cache("other", server))
        try one.put("value", forKey: "key", options: PutOptions(expires: .days(1), tags: ["tag"]))
        waitUntil("it is sent") { server.has("key") }
        let hit = try #require(try other.get(forKey: "key"))
        #expect(hit.source == .remote && hit.entry.tags == ["tag"] && hit.entry.expires != nil)
        #expect(try other.get(forKey: "key")?.source == .disk)
        waitUntil("it is counted") { one.directory.activity.remoteWrites == 1 }
        #expect(one.directory.activity.remoteBytesSent == 5)
        #expect(other.directory.activity.remoteBytesReceived == 5)
    }

    @Test func `a removed value is deleted from the server, and never returned again`() throws {
        let (one, other) = (try machines.cache("one", server), try machines.cache("other", server))
        try one.put("value", forKey: "key")
        waitUntil("it is sent") { server.has("key") }
        server.be(.failing)
        try one.remove(forKey: "key")
        #expect(try one.text("key") == nil)
        server.be(.usual)
        waitUntil("it is told") { server.hasRemoval(of: "key") }
        #expect(try one.text("key") == nil && other.text("key") == nil)
    }

    @Test func `a removal on another machine keeps older values of all levels away`() throws {
        let later = FakeClient()
        let one = try machines.cache("one", later)
        try one.put("value", forKey: "key")
        waitUntil("it is sent") { later.has("key") && one.directory.remote?.waiting == 0 }
        let remover = try machines.cache("remover", server)
        try remover.remove(forKey: "key")
        waitUntil("it is told") { server.hasRemoval(of: "key") }
        let other = try machines.cache("other", server, later)
        #expect(try other.text("key") == nil)
        // The removal is remembered even if the server has lost it.
        server.forget("key")
        #expect(try other.text("key") == nil)
        other.close()
        #expect(try machines.cache("other", server, later).text("key") == nil)
        #expect(later.has("key"))
        try one.put("new", forKey: "key")
        waitUntil("it is sent") { later.text("key") == "new" }
        #expect(try machines.cache("other", server, later).text("key") == "new")
    }

    @Test func `a server that has gone back to an older value does not bring it back`() throws {
        let (one, other) = (try machines.cache("one", server), try machines.cache("other", server))
        try one.put("old", forKey: "key")
        waitUntil("it is sent") { server.has("key") && one.directory.remote?.waiting == 0 }
        let old = try #require(server.parcel("key"))
        try one.put("new", forKey: "key")
        waitUntil("it is sent") { server.text("key") == "new" && one.directory.remote?.waiting == 0 }
        #expect(try other.text("key") == "new")
        server.restore(old, "key")
        for machine in [one, other] {
            try machine.evict("key")
            #expect(try machine.text("key") == nil)
        }
        let third = try machines.cache("third", server)
        #expect(try third.text("key") == "old", "it has not seen the newer one")
        // The next change is later than all that a machine has seen.
        try third.put("newest", forKey: "key")
        waitUntil("it is sent") { server.text("key") == "newest" }
        #expect(try one.text("key") == "newest" && other.text("key") == "newest")
    }

    /// Returns a machine that has replaced a value of the server, and has evicted the new one before it was sent.
    private func machineWithoutNewValue() throws -> SharedCache {
        let one = try machines.cache("one", server)
        try one.put("old", forKey: "key")
        waitUntil("it is sent") { server.has("key") && one.directory.remote?.waiting == 0 }
        server.be(.failing)
        try one.put("new", forKey: "key")
        try one.evict("key")
        // The first attempt from now on may have read the value before that.
        let attempts = server.writes
        waitUntil("it is tried again") { server.writes >= attempts + 2 }
        server.be(.usual)
        return one
    }

    @Test func `a change that was evicted before it was sent removes the older value of the servers`() throws
    {
        let one = try machineWithoutNewValue()
        waitUntil("it is told") { server.hasRemoval(of: "key") && one.directory.remote?.waiting == 0 }
        #expect(try one.text("key") == nil)
    }

    @Test func `an entry that is older than the recorded change is not sent`() throws {
        let one = try machines.cache("one", server)
        try one.put("old", forKey: "key")
        waitUntil("it is sent") { server.has("key") && one.directory.remote?.waiting == 0 }
        // A process was killed after it had recorded a change.
        let key = Digest(ofKey: "key")
        let version = try #require(server.record("key")).version.rawValue + 1
        let change = OutboxRecord(number: version, entry: key, work: .put(content: key, length: 3))
        try one.withStore { (store, _) throws(CacheError) in
            try describing("append to", "the outbox") { () throws(Errno) in try store.outbox.append(change) }
        }
        waitUntil("it is sent") { server.hasRemoval(of: "key") && one.directory.remote?.waiting == 0 }
        #expect(server.record("key")?.version.rawValue == version)
    }

    @Test func `an old value is not returned after its replacement was evicted`() throws {
        let one = try machineWithoutNewValue()
        let found = try one.text("key")
        #expect(found == nil || found == "new")
    }

    /// The system's clock with an offset that the test advances.
    private final class Clock: Sendable {
        private let offset = Locked<TimeInterval>(0)
        var now: Date { Date(timeIntervalSinceNow: offset.withLock { $0 }) }
        func advance(by seconds: TimeInterval) { offset.withLock { $0 += seconds } }
    }

    @Test func `removeAll removes a value of a machine whose clock is ahead`() throws {
        let ahead = try machines.cache("ahead", server, now: { Date(timeIntervalSinceNow: 300) })
        let one = try machines.cache("one", server)
        try ahead.put("old", forKey: "key")
        waitUntil("it is sent") { server.has("key") }
        #expect(try one.text("key") == "old")
        try one.removeAll()
        #expect(try one.text("key") == nil && server.text("key") == "old")
        // This outlives the control file.
        try FileManager.default.removeItem(atPath: machines.directory.path + "/one/control")
        #expect(try machines.cache("one", server).text("key") == nil)
    }

    @Test func `no value is taken from a machine whose clock is more than an hour ahead`() throws {
        let one = try machines.cache("one", server)
        for (seconds, isTaken) in [(3_500.0, true), (3_700, false)] {
            let ahead = try machines.cache("ahead", server, now: { Date(timeIntervalSinceNow: seconds) })
            try ahead.put("value", forKey: "\(seconds)")
            waitUntil("it is sent") { server.has("\(seconds)") }
            #expect(try one.text("\(seconds)") == (isTaken ? "value" : nil))
            ahead.close()
            // Its version does not keep later changes of other machines from the server.
            try one.put("ours", forKey: "\(seconds)")
            waitUntil("it is sent") { server.text("\(seconds)") == "ours" }
        }
    }

    @Test(arguments: [false, true])
    func `an unanswered request that takes effect late does not bring back an older value`(
        isRemoval: Bool
    ) throws {
        let clock = Clock()
        let one = try machines.cache("one", server, now: { clock.now })
        server.be(.dawdling)
        try one.put("old", forKey: "key")
        waitUntil("it was tried") { server.writes > 0 }
        server.be(.usual)
        if isRemoval {
            try one.remove(forKey: "key")
        } else {
            try one.put("new", forKey: "key")
        }
        let now = isRemoval ? nil : "new"
        waitUntil("it is sent") { server.text("key") == now && one.directory.remote?.waiting == 0 }
        server.carryOutLate()
        #expect(server.text("key") == "old")
        #expect(try one.text("key") == now)
        if isRemoval {
            let second = try machines.cache("one", server, now: { clock.now })
            #expect(try second.text("key") == nil)
        }
        clock.advance(by: 301)
        waitUntil("it is sent again") { server.text("key") == now }
        try one.evict("key")
        #expect(try one.text("key") == now)
    }

    @Test func `processes without the tier record their changes`() throws {
        let one = try machines.cache("one", server)
        let plain = try machines.plain("one")
        try plain.put("value", forKey: "key")
        waitUntil("it is sent") { server.has("key") }
        try plain.remove(forKey: "key")
        #expect(try one.text("key") == nil)
        waitUntil("it is told") { server.hasRemoval(of: "key") }
    }

    @Test func `the next process sends pending changes`() throws {
        server.be(.failing)
        let first = try machines.cache("one", server)
        try first.put("value", forKey: "key")
        first.close()
        #expect(!server.has("key"))
        server.be(.usual)
        let next = try machines.cache("one", server)
        waitUntil("it is sent") { server.has("key") }
        withExtendedLifetime(next) {}
    }

    @Test func `a wrong value is a miss that is counted, reported and removed from the server`() throws {
        let reports = Locked<[String]>.Box([])
        let one = try machines.cache("one", server)
        let other = try machines.cache("other", server) { event in
            if case .remoteValueWrong(_, let name, _) = event { reports.value.withLock { $0.append(name) } }
        }
        try one.put("value", forKey: "key")
        waitUntil("it is sent") { server.has("key") }
        server.damage("key")
        #expect(try other.text("key") == nil)
        #expect(other.directory.activity.remoteCorruptions == 1)
        #expect(reports.value.withLock { $0 } == ["server 0"])
        waitUntil("it is removed") { !server.has("key") }
    }

    @Test func `a value that is too long for this machine is a miss, and stays on the server`() throws {
        let later = FakeClient()
        let one = try machines.cache("one", server, later)
        try one.put("value", forKey: "key")
        waitUntil("it is sent") {
            server.has("key") && later.has("key") && one.directory.remote?.waiting == 0
        }
        server.be(.tooLong)
        let other = try machines.cache("other", server, later)
        #expect(try other.text("key") == "value", "the next level has it")
        #expect(other.directory.activity.remoteCorruptions == 0 && server.has("key"))
        #expect(other.directory.remote?.servers.first?.breaker == "closed")
    }

    @Test func `another key's intact value is a wrong value`() throws {
        let (one, other) = (try machines.cache("one", server), try machines.cache("other", server))
        try one.put("a", forKey: "a")
        try one.put("b", forKey: "b")
        waitUntil("they are sent") { server.count == 2 }
        server.mix("a", with: "b")
        #expect(try other.text("a") == nil)
        #expect(other.directory.activity.remoteCorruptions == 1)
    }

    @Test func `three failures open the breaker for all processes, and it closes automatically`() throws {
        let one = try machines.cache("one", server)
        let second = try machines.cache("one", server)
        server.be(.failing)
        for number in 0..<3 { #expect(try one.text("\(number)") == nil) }
        #expect(one.directory.remote?.servers.first?.breaker != "closed")
        #expect(one.directory.activity.remoteErrors == 3)
        #expect(second.directory.remote?.servers.first?.breaker != "closed")
        server.be(.usual)
        waitUntil("it closes") {
            _ = try? second.text("probe \(Int.random(in: 0...1_000_000))")
            return one.directory.remote?.servers.first?.breaker == "closed"
        }
    }

    @Test func `requests that a process can't send do not open the breaker of all processes`() throws {
        let broken = FakeClient()
        broken.be(.unable)
        let one = try machines.cache("one", broken)
        let second = try machines.cache("one", server)
        for number in 0..<10 { #expect(try one.text("\(number)") == nil) }
        #expect(one.directory.activity.remoteErrors < 10, "this process pauses")
        #expect(second.directory.remote?.servers.first?.breaker == "closed")
    }

    @Test func `a server without room for values may have room for removals, and each pauses alone`() throws {
        let directory = try TemporaryDirectory()
        let store = try Store(at: directory.path + "/cache")
        var terms = CircuitBreaker.Terms()
        (terms.firstPause, terms.longestPause) = (3_600_000, 3_600_000)
        let full = RemoteServer("full", FakeClient(), terms)
        let requests = Locked(0)
        func send(_ isRemoval: Bool, fails: Bool) {
            do throws(RemoteFailure) {
                try full.store(isRemoval: isRemoval, in: store, until: .now + hangLimit) {
                    () throws(RemoteFailure) in
                    requests.withLock { $0 += 1 }
                    if fails { throw RemoteFailure(.full, "it is full") }
                }
            } catch {
                #expect(error.kind == .full || error.kind == .skipped)
            }
        }
        for _ in 0..<10 { send(false, fails: true) }
        #expect(requests.withLock { $0 } == 3)
        #expect(!full.mayBeTold(.put(content: Digest(ofKey: ""), length: 0), in: store.control))
        #expect(full.mayBeTold(.remove, in: store.control))
        for _ in 0..<5 { send(true, fails: false) }
        #expect(requests.withLock { $0 } == 8)
        for _ in 0..<10 { send(true, fails: true) }
        #expect(requests.withLock { $0 } == 11)
        #expect(!full.mayBeTold(.remove, in: store.control))
    }

    @Test func `the sender does not traverse the outbox while all breakers are open`() throws {
        server.be(.failing)
        var options = CacheConfiguration()
        options.janitor.isEnabled = false
        var terms = CircuitBreaker.Terms()
        (terms.firstPause, terms.longestPause) = (3_600_000, 3_600_000)
        let level = RemoteLevel([RemoteServer("server", server, terms)], weights: [1])
        let (remote, made) = (machines.configuration, Locked<ServerTier?>.Box(nil))
        let cache = try SharedCache(at: machines.directory.path + "/one", configuration: options) {
            (host: RemoteContext) throws(CacheError) -> (any RemoteTier)? in
            let tier = ServerTier([level], remote, host)
            made.value.withLock { $0 = tier }
            return tier
        }
        try cache.put("value", forKey: "key")
        waitUntil("the breaker opens") { cache.directory.remote?.servers.first?.breaker == "open" }
        let sender = try #require(made.value.withLock { $0?.sender })
        func wait(rounds: Int) throws {
            let before = sender.work.withLock { $0.rounds }
            waitUntil("it looks again") { sender.work.withLock { $0.rounds } >= before + rounds }
        }
        // One round may be in progress.
        try wait(rounds: 2)
        let passes = sender.work.withLock { $0.passes }
        for number in 0..<5 {
            try cache.put("value", forKey: "\(number)")
            try wait(rounds: 1)
        }
        #expect(sender.work.withLock { $0.passes } == passes)
        #expect(cache.directory.remote?.waiting == 6)
    }

    @Test func `a server that hangs delays only some calls, as the breaker opens`() throws {
        var machines = machines
        machines.configuration.limit = .milliseconds(100)
        let one = try machines.cache("one", server)
        server.be(.hanging)
        var slow = 0
        for number in 0..<50 {
            let start = ContinuousClock.now
            #expect(try one.text("\(number)") == nil)
            if ContinuousClock.now - start >= .milliseconds(100) { slow += 1 }
        }
        // Probes are among the slow calls: each takes 100 ms, after a pause of at least 10 ms.
        #expect(slow < 40)
        #expect(one.directory.activity.remoteTimeouts >= 3)
        #expect(one.directory.activity.remoteSkips > 0)
    }

    @Test func `a level that hangs leaves time for the next one`() throws {
        var machines = machines
        let second = FakeClient()
        let one = try machines.cache("one", second)
        try one.put("value", forKey: "key")
        waitUntil("it is sent") { second.has("key") }
        machines.configuration.limit = .seconds(2)
        server.be(.hanging)
        let other = try machines.cache("other", server, second)
        #expect(try other.text("key") == "value")
    }

    @Test func `a value found in a later level is written to an earlier level that lacks it`() throws {
        let second = FakeClient()
        let one = try machines.cache("one", second)
        try one.put("value", forKey: "key", options: PutOptions(tags: ["tag"]))
        waitUntil("it is sent") { second.has("key") }
        let writes = second.writes
        let other = try machines.cache("other", server, second)
        #expect(try other.text("key") == "value")
        waitUntil("it is written") { server.has("key") }
        #expect(second.writes == writes)
        let third = try machines.cache("third", server)
        #expect(try third.get(forKey: "key")?.entry.tags == ["tag"])
    }

    @Test func `a newer value that reaches an earlier level first is not replaced by an older one`() throws {
        let later = FakeClient()
        let other = try machines.cache("other", later)
        try other.put("old", forKey: "key")
        waitUntil("it is sent") { later.has("key") }
        let record = Record(content: Content(of: Data("new".utf8).span), created: .now)
        server.interfere { [server] in server.set("new", "key", record) }
        let one = try machines.cache("one", server, later)
        #expect(try one.text("key") == "old")
        waitUntil("it is offered") { server.writes == 1 && server.has("key") }
        one.close()
        #expect(server.text("key") == "new")
    }

    @Test func `mode read writes nothing to an earlier level`() throws {
        var machines = machines
        let second = FakeClient()
        let one = try machines.cache("one", second)
        try one.put("value", forKey: "key")
        waitUntil("it is sent") { second.has("key") }
        machines.configuration.mode = .read
        let other = try machines.cache("other", server, second)
        #expect(try other.text("key") == "value")
        other.close()
        #expect(server.writes == 0)
    }

    @Test func `a value that was changed locally since is not written to an earlier level`() throws {
        let second = FakeClient()
        let one = try machines.cache("one", second)
        for number in 0..<20 { try one.put("old", forKey: "\(number)") }
        waitUntil("all is sent") { second.count == 20 }
        let other = try machines.cache("other", server, second)
        for number in 0..<20 {
            #expect(try other.text("\(number)") == "old")
            if number % 2 == 0 {
                try other.put("new", forKey: "\(number)")
            } else {
                try other.remove(forKey: "\(number)")
            }
        }
        waitUntil("all is told") {
            other.directory.remote?.waiting == 0
                && (0..<20).allSatisfy { second.has("\($0)") == ($0 % 2 == 0) }
        }
        other.close()
        for number in 0..<20 { #expect(server.text("\(number)") == (number % 2 == 0 ? "new" : nil)) }
    }

    @Test func `a change is sent to a level once even while another level is down`() throws {
        let second = FakeClient()
        second.be(.failing)
        let one = try machines.cache("one", server, second)
        try one.put("value", forKey: "key")
        waitUntil("it is tried again and again") { second.requests >= 6 }
        #expect(server.writes == 1)
        second.be(.usual)
        waitUntil("it is sent") { second.has("key") && one.directory.remote?.waiting == 0 }
        #expect(server.writes == 1)
    }

    @Test func `a refused change is dropped, and the server's old value is not returned`() throws {
        let one = try machines.cache("one", server)
        try one.put("old", forKey: "key")
        waitUntil("it is sent") { server.has("key") && one.directory.remote?.waiting == 0 }
        server.be(.refusingWrites)
        try one.put("new", forKey: "key")
        waitUntil("it is given up") { one.directory.activity.remoteDrops >= 1 }
        try one.evict("key")
        #expect(try one.text("key") == nil)
    }

    @Test func `denied changes stay pending until they are allowed, and old values are not returned`()
        throws
    {
        let one = try machines.cache("one", server)
        try one.put("old", forKey: "key")
        try one.put("old", forKey: "gone")
        waitUntil("it is sent") { server.count == 2 && one.directory.remote?.waiting == 0 }
        server.be(.denyingWrites)
        try one.put("new", forKey: "key")
        try one.remove(forKey: "gone")
        waitUntil("it is tried again and again") { one.directory.activity.remoteErrors >= 6 }
        #expect(one.directory.activity.remoteDrops == 0 && one.directory.remote?.waiting == 2)
        #expect(one.directory.remote?.servers.first?.breaker == "closed", "it can be read")
        try one.evict("key")
        #expect(try one.text("key") == nil && one.text("gone") == nil)
        try one.put("new", forKey: "key")
        server.be(.usual)
        waitUntil("it is told") { server.text("key") == "new" && !server.has("gone") }
    }

    @Test func `a value that was removed in mode off is not returned in mode readWrite`() throws {
        let one = try machines.cache("one", server)
        for key in ["key", "kept"] { try one.put("value", forKey: key) }
        waitUntil("it is sent") { server.count == 2 && one.directory.remote?.waiting == 0 }
        var remote = machines.configuration
        remote.mode = .off
        try one.directory.setRemoteConfiguration(remote)
        one.close()
        let off = try SharedCache(at: machines.directory.path + "/one", remote: nil)
        #expect(off.directory.remote == nil)
        try off.remove(forKey: "key")
        try off.evict("kept")
        off.close()
        let on = try machines.cache("one", server)
        #expect(try on.text("key") == nil && on.text("kept") == "value")
    }

    @Test func `a value that was removed while changes are not recorded is not returned`() throws {
        let one = try machines.cache("one", server)
        try one.put("value", forKey: "key")
        waitUntil("it is sent") { server.has("key") && one.directory.remote?.waiting == 0 }
        one.close()
        let plain = try machines.plain("one")
        try plain.withStore { (store, _) in store.noteChanges(false) }
        try plain.remove(forKey: "key")
        #expect(try machines.cache("one", server).text("key") == nil)
        #expect(try machines.cache("two", server).text("key") == "value")
    }

    @Test func `a value that was removed after the control file was lost is not returned`() throws {
        let one = try machines.cache("one", server)
        for key in ["key", "kept"] { try one.put("value", forKey: key) }
        waitUntil("it is sent") { server.count == 2 && one.directory.remote?.waiting == 0 }
        one.close()
        try FileManager.default.removeItem(atPath: machines.directory.path + "/one/control")
        let plain = try machines.plain("one")
        try plain.remove(forKey: "key")
        try plain.evict("kept")
        let again = try machines.cache("one", server)
        #expect(try again.text("key") == nil && again.text("kept") == "value")
    }

    @Test func `a value removed by prefix is not returned after the control file is lost`()
        throws
    {
        let one = try machines.cache("one", server)
        try one.put("value", forKey: "a/1")
        waitUntil("it is sent") { server.count == 1 && one.directory.remote?.waiting == 0 }
        try one.removeAll(.prefix("a/"))
        // The rule has been carried out, and is no longer in its file.
        _ = try one.directory.collect()
        one.close()
        try FileManager.default.removeItem(atPath: machines.directory.path + "/one/control")
        let again = try machines.cache("one", server)
        #expect(try again.text("a/1") == nil && server.has("a/1"))
        try again.put("new", forKey: "a/1")
        waitUntil("it is sent") { server.text("a/1") == "new" }
        try again.evict("a/1")
        #expect(try again.text("a/1") == "new")
    }

    @Test func `a server that answers every request with success is not trusted`() throws {
        server.be(.agreeing)
        let one = try machines.cache("one", server)
        try one.put("value", forKey: "key")
        waitUntil("it is tried again and again") { one.directory.activity.remoteErrors >= 4 }
        #expect(server.writes == 0 && one.directory.activity.remoteWrites == 0)
        #expect(one.directory.remote?.waiting == 1)
        server.be(.usual)
        waitUntil("it is sent") { server.has("key") && one.directory.remote?.waiting == 0 }
        // This also holds if the server starts to do so later, which a wrong answer reveals.
        server.be(.agreeing)
        #expect(try one.text("other") == nil)
        let writes = server.writes
        try one.put("value", forKey: "late")
        waitUntil("it is noticed") { one.directory.remote?.servers.first?.breaker != "closed" }
        #expect(server.writes == writes)
        server.be(.usual)
        waitUntil("it is sent") { server.has("late") }
    }

    @Test func `a remote record that claims to be local-only is removed from the server like others`()
        throws
    {
        let one = try machines.cache("one", server)
        var record = Record(content: Content(of: Data("theirs".utf8).span), created: .now)
        record.details.staysHere = true
        server.set("theirs", "key", record)
        #expect(try one.text("key") == "theirs")
        try one.remove(forKey: "key")
        waitUntil("it is told") { !server.has("key") }
        #expect(try one.text("key") == nil)
    }

    @Test func `mode read sends nothing, and does not return remote values of changed keys`() throws {
        var machines = machines
        let writer = try machines.cache("one", server)
        try writer.put("theirs", forKey: "key")
        waitUntil("it is sent") { server.has("key") }
        machines.configuration.mode = .read
        let reader = try machines.cache("other", server)
        let writes = server.writes
        #expect(try reader.text("key") == "theirs")
        try reader.put("ours", forKey: "mine")
        try reader.remove(forKey: "key")
        #expect(try reader.text("key") == nil)
        reader.close()
        #expect(server.writes == writes)
    }

    @Test func `only values of the configured sizes and tags are sent`() throws {
        var machines = machines
        machines.configuration.minimumSize = 2
        machines.configuration.maximumSize = 4
        machines.configuration.tags = ["a", "b"]
        let one = try machines.cache("one", server)
        let tagged = PutOptions(tags: ["b", "c"])
        for (key, text) in [("small", "1"), ("large", "12345"), ("right", "123")] {
            try one.put(text, forKey: key, options: tagged)
        }
        try one.put("123", forKey: "untagged")
        waitUntil("all is done") { one.directory.remote?.waiting == 0 && server.has("right") }
        #expect(server.count == 1)
    }

    @Test func `local-only values are not sent to the server nor requested from it`() throws {
        let one = try machines.cache("one", server)
        var options = PutOptions()
        options.staysHere = true
        try one.put("ours", forKey: "own", options: options)
        try one.put("all", forKey: "key")
        waitUntil("it is sent") { server.has("key") && one.directory.remote?.waiting == 0 }
        #expect(server.count == 1)
        // Recorded in the outbox, as push does.
        let isNoted = try one.withStore { (store, _) throws(CacheError) in
            try store.noteEntry(Digest(ofKey: "own"))
        }
        #expect(isNoted)
        waitUntil("it is left out") { one.directory.remote?.waiting == 0 }
        #expect(server.count == 1)
        let requests = server.requests
        #expect(try one.get(forKey: "none", reading: .here()) == nil)
        var reading = ReadOptions()
        reading.asksRemote = false
        let computed = try one.hit(forKey: "none", reading: reading) { _ in .unkept(Data("own".utf8)) }
        #expect(computed?.source == .computed)
        #expect(server.requests == requests)
    }

    @Test func `the removal of a local-only value is not sent`() throws {
        let one = try machines.cache("one", server)
        var options = PutOptions()
        options.staysHere = true
        try one.put("ours", forKey: "own", options: options)
        options.expires = .after(.milliseconds(1))
        try one.put("ours", forKey: "brief", options: options)
        waitUntil("it is over") { (try? one.entry(forKey: "brief")) == .some(nil) }
        #expect(try one.remove(forKey: "own"))
        #expect(try !one.remove(forKey: "brief"))
        #expect(try one.text("own") == nil)
        try one.put("all", forKey: "key")
        waitUntil("what came later is sent") { server.has("key") && one.directory.remote?.waiting == 0 }
        #expect(server.writes == 1)
    }

    @Test func `older remote values are not returned after removeAll`() throws {
        let one = try machines.cache("one", server)
        try one.put("value", forKey: "key")
        waitUntil("it is sent") { server.has("key") && one.directory.remote?.waiting == 0 }
        try one.removeAll()
        #expect(try one.text("key") == nil)
        #expect(server.has("key"), "nobody has looked for what to remove there")
    }

    @Test func `a computed value is sent, and another machine does not compute it again`() throws {
        let (one, other) = (try machines.cache("one", server), try machines.cache("other", server))
        _ = one.value(forKey: "key") { Data("computed".utf8) }
        waitUntil("it is sent") { server.has("key") }
        let value = other.value(forKey: "key") { Data("again".utf8) }
        #expect(value == Data("computed".utf8))
        #expect(other.directory.activity.computations == 0)
    }

    @Test func `nothing is recorded if nothing is sent`() throws {
        var machines = machines
        machines.configuration.mode = .read
        let one = try machines.cache("one", server)
        for number in 0..<30 { try one.put("\(number)", forKey: "key \(number % 10)") }
        try one.remove(forKey: "key 1")
        let attributes = try FileManager.default.attributesOfItem(atPath: "\(one.path)/outbox")
        #expect(attributes[.size] as? Int == 0)
    }

    @Test func `a process that only reads does not stop others from recording changes`() throws {
        var machines = machines
        let writer = try machines.cache("one", server)
        machines.configuration.mode = .read
        for _ in 0..<5 {
            let reader = try machines.cache("one", server)
            #expect(try writer.withStore { (store, _) in store.control.notesChanges })
            reader.close()
        }
    }

    @Test func `a process without servers of its own does not stop others from recording changes`() throws {
        let writer = try machines.cache("one", server)
        var configured = machines.configuration
        configured.mode = .read
        let json = configured
        // As if it had been edited by hand.
        try writer.withStore { (store, _) throws(CacheError) in
            try store.configure { (configuration) throws(CacheError) in
                _ = configuration.setRemote(json.json)
            }
        }
        let reader = try SharedCache(at: writer.path, remote: nil)
        #expect(try writer.withStore { (store, _) in store.control.notesChanges })
        reader.close()
    }

    @Test func `a process that uses the directory's servers records changes as the directory says`() throws {
        let plain = try machines.plain("one")
        var remote = CacheConfiguration.Remote(servers: ["http://127.0.0.1:1"])
        func isRecorded() throws -> Bool { try plain.withStore { (store, _) in store.control.notesChanges } }
        try plain.directory.setRemoteConfiguration(remote)
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        let writer = try SharedCache(at: plain.path, configuration: configuration, remote: nil)
        #expect(try isRecorded())
        func edit(_ json: [UInt8]) throws {
            try plain.withStore { (store, _) throws(CacheError) in
                try store.configure { (configuration) throws(CacheError) in _ = configuration.setRemote(json)
                }
            }
        }
        func waitUntilItIsRead(_ json: [UInt8]?) {
            waitUntil("the sender has read it") {
                (try? writer.withStore { (store, _) in store.configuration.remote }) == json
            }
        }
        var number = 0
        func expectChangesAreRecorded() throws {
            for _ in 1...3 {
                number += 1
                try plain.put("value", forKey: "\(number)")
                waitUntil("the change is recorded") { writer.directory.remote?.waiting == number }
            }
        }
        // An editing mistake.
        let invalid = Array(#"{"servers":"none"}"#.utf8)
        try edit(invalid)
        waitUntilItIsRead(invalid)
        try expectChangesAreRecorded()
        // As if the directory was deleted and made again.
        try FileManager.default.removeItem(atPath: plain.path + "/config.json")
        waitUntilItIsRead(nil)
        try expectChangesAreRecorded()
        remote.mode = .off
        try edit(remote.json)
        waitUntilItIsRead(remote.json)
        waitUntil("the sender follows the configuration") { (try? isRecorded()) == false }
        writer.close()
        #expect(try !isRecorded())
    }

    @Test func `a machine with a slow clock replaces a newer entry once it has compared a change with it`()
        throws
    {
        let one = try machines.cache("one", server)
        try one.put("theirs", forKey: "key")
        waitUntil("it is sent") { one.directory.remote?.waiting == 0 && server.has("key") }
        let slow = try machines.cache("slow", server, now: { .now - 600 })
        for value in ["first", "second"] {
            let writes = server.writes
            try slow.put(value, forKey: "key")
            waitUntil("it is compared") { server.writes > writes && slow.directory.remote?.waiting == 0 }
        }
        let other = try machines.cache("other", server)
        #expect(try other.text("key") == "second")
    }

    @Test func `a full journal is emptied once the servers accept changes`() throws {
        server.be(.denyingWrites)
        let one = try machines.cache("one", server)
        for number in 0..<100 { try one.put("\(number)", forKey: "key \(number)") }
        one.close()
        let path = "\(one.path)/outbox"
        let records = try #require(FileManager.default.contents(atPath: path))
        var bytes = records
        // So many that the file is not compacted only because of them, and not due yet.
        let moment = (Timestamp.now + .seconds(250)).milliseconds
        for number in 0..<40_000 {
            let key = Digest(ofKey: "doubt \(number)")
            bytes += OutboxRecord(number: UInt64(number), entry: key, work: .doubt(until: moment)).encoded()
        }
        while bytes.count < OutboxFile.longest { bytes += records }
        try bytes.write(to: URL(filePath: path))
        let plain = try machines.plain("one")
        try plain.put("lost", forKey: "lost")
        #expect(plain.directory.activity.remoteDrops == 1)
        server.be(.usual)
        let again = try machines.cache("one", server)
        waitUntil("all is sent") { server.count == 100 && again.directory.remote?.waiting == 0 }
        waitUntil("the file is shorter") {
            let attributes = try? FileManager.default.attributesOfItem(atPath: path)
            return (attributes?[.size] as? Int64 ?? .max) < OutboxFile.longest / 2
        }
        try again.put("new", forKey: "new")
        waitUntil("it is sent") { server.has("new") && again.directory.remote?.waiting == 0 }
    }

    /// Returns a machine whose put of "new" was not sent before its clock was set back.
    private func machineWithPendingPut(ahead seconds: TimeInterval) throws -> (SharedCache, Clock) {
        let clock = Clock()
        clock.advance(by: seconds)
        let one = try machines.cache("one", server, now: { clock.now })
        server.be(.denyingWrites)
        try one.put("new", forKey: "key")
        waitUntil("it is tried") { one.directory.activity.remoteErrors > 0 }
        clock.advance(by: -seconds)
        server.be(.usual)
        return (one, clock)
    }

    @Test func `a change from a clock that was ahead is not sent before other machines would take it`() throws
    {
        let other = try machines.cache("other", server)
        try other.put("old", forKey: "key")
        waitUntil("it is sent") { server.has("key") }
        let (one, clock) = try machineWithPendingPut(ahead: 7200)
        // This is later, and has to wait, too.
        try one.put("value", forKey: "later")
        try one.waitForPass()
        #expect(one.directory.remote?.waiting == 2 && server.text("key") == "old" && server.count == 1)
        clock.advance(by: 7200)
        waitUntil("all is sent") { server.text("key") == "new" && one.directory.remote?.waiting == 0 }
    }

    @Test func `a value that is not valid yet after the clock was set back is not sent as a removal`() throws
    {
        let (one, clock) = try machineWithPendingPut(ahead: 600)
        // A removal is always valid, and is sent after the value.
        try one.remove(forKey: "other")
        waitUntil("the removal is sent") { server.hasRemoval(of: "other") }
        #expect(!server.hasRemoval(of: "key") && one.directory.remote?.waiting == 1)
        clock.advance(by: 600)
        waitUntil("it is sent") { server.text("key") == "new" }
    }

    @Test func `a stopped process that asks for a key does not stop others from asking`() throws {
        let other = try machines.cache("other", server)
        try other.put("value", forKey: "key")
        waitUntil("it is sent") { server.has("key") }
        let one = try machines.cache("one", server)
        let stopped = try machines.plain("one")
        let key = Digest(ofKey: "key")
        let isHolding = try stopped.withStore { (store, _) in store.requestLocks.attempt(key) }
        #expect(isHolding)
        #expect(try one.text("key") == "value")
        try stopped.withStore { (store, _) in store.requestLocks.release(key) }
    }

    @Test func `a journal that has grown is compacted`() throws {
        let one = try machines.cache("one", server)
        for number in 0..<1500 { try one.put("\(number)", forKey: "key") }
        waitUntil("all is sent and the file is short") {
            let size =
                (try? FileManager.default.attributesOfItem(atPath: "\(one.path)/outbox"))?[.size] as? Int
            return one.directory.remote?.waiting == 0 && (size ?? 0) < 1500 * OutboxRecord.size
        }
        #expect(server.has("key"))
    }
}
