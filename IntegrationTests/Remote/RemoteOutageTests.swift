// SPDX-License-Identifier: Apache-2.0

import DiskCacheRemote
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

private let hasRedis = RemoteServerProcess.Kind.redis.program != nil

private func breaker(_ cache: SharedCache) -> String? { cache.directory.remote?.servers.first?.breaker }

/// Tests of servers that are killed, stopped or slow while they are used.
@Suite(.takesTurns) struct RemoteOutageTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func open(_ machine: String, _ remote: CacheConfiguration.Remote?) throws -> SharedCache {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        // So that every hit reads the disk.
        configuration.memory = .none
        return try SharedCache(
            at: "\(directory.path)/\(machine)",
            configuration: configuration,
            remote: remote
        )
    }

    /// The counts of a load.
    private final class Tally: Sendable {
        let isOver = Atomic<Bool>(false)
        let gets = Atomic<Int>(0)
        let slow = Atomic<Int>(0)
        let failures = Atomic<Int>(0)
        let wrong = Atomic<Int>(0)
        /// The number of threads that have ended.
        let ended = Atomic<Int>(0)
    }

    @Test(.enabled(if: hasRedis, "redis-server is not installed"))
    func `outages of a server under load fail no get, and slow down few`() throws {
        let server = try RemoteServerProcess(.redis)
        let remote = CacheConfiguration.Remote(servers: [server.url])
        let (one, other) = (try open("one", remote), try open("other", remote))
        let (tally, limit) = (Tally(), remote.limit)
        let load: @Sendable (Int) -> Void = { thread in
            defer { tally.ended.add(1, ordering: .relaxed) }
            var number = 0
            while !tally.isOver.load(ordering: .relaxed) {
                number += 1
                let key = "\(thread) \(number)"
                do {
                    try one.put(Data(key.utf8), forKey: key)
                    let start = ContinuousClock.now
                    let hit = try other.get(forKey: key)
                    tally.gets.add(1, ordering: .relaxed)
                    if ContinuousClock.now - start > limit * 2 { tally.slow.add(1, ordering: .relaxed) }
                    if let hit, hit.value != Data(key.utf8) { tally.wrong.add(1, ordering: .relaxed) }
                } catch {
                    tally.failures.add(1, ordering: .relaxed)
                }
            }
        }
        for thread in 0..<2 { Thread.detachNewThread { load(thread) } }
        do {
            defer { tally.isOver.store(true, ordering: .relaxed) }
            // Not on a thread that ends: Foundation's `Process` leaves a run loop there, which the thread sanitizer does not
            // survive.
            for outage in 0..<2 {
                let before = tally.gets.load(ordering: .relaxed)
                waitUntil("the load goes on") { tally.gets.load(ordering: .relaxed) > before + 100 }
                if outage == 0 { server.end() } else { server.pause() }
                waitUntil("the breaker opens") { breaker(other) != "closed" }
                let open = tally.gets.load(ordering: .relaxed)
                waitUntil("gets go on") { tally.gets.load(ordering: .relaxed) > open + 100 }
                if outage == 0 { try server.start() } else { server.goOn() }
                waitUntil("it closes by itself") { breaker(other) == "closed" }
            }
        }
        waitUntil("the load has ended") { tally.ended.load(ordering: .relaxed) == 2 }
        let gets = tally.gets.load(ordering: .relaxed)
        #expect(tally.failures.load(ordering: .relaxed) == 0 && tally.wrong.load(ordering: .relaxed) == 0)
        #expect(tally.slow.load(ordering: .relaxed) * 50 <= gets, "of \(gets)")
        #expect(other.directory.activity.remoteHits > 0 || one.directory.activity.remoteWrites > 0)
    }

    @Test func `three refused connections open the breaker`() throws {
        let port = try ClosedPort()
        defer { withExtendedLifetime(port) {} }
        let cache = try open("one", CacheConfiguration.Remote(servers: ["redis://127.0.0.1:\(port.number)"]))
        for number in 0..<3 { #expect(try cache.get(forKey: "\(number)") == nil) }
        #expect(breaker(cache) == "open")
        #expect(cache.directory.activity.remoteErrors == 3)
        #expect(try cache.get(forKey: "4") == nil)
        #expect(cache.directory.activity.remoteErrors <= 4)
    }

    @Test(.enabled(if: hasRedis, "redis-server is not installed"))
    func `hits on disk ask no server, so a slow one does not slow them down`() throws {
        let server = try RemoteServerProcess(.redis)
        let proxy = try SlowProxy(to: server.port, pause: 10_000)
        let remote = CacheConfiguration.Remote(servers: ["redis://127.0.0.1:\(proxy.port)"])
        let cache = try open("one", remote)
        for number in 0..<100 { try cache.put("\(number)", forKey: "\(number)") }
        waitUntil("all is sent") { cache.directory.remote?.waiting == 0 }
        let sent = proxy.requestBytes
        #expect(sent > 100)
        for number in 0..<100 { #expect(try cache.get(forKey: "\(number)") != nil) }
        #expect(proxy.requestBytes == sent)
    }

    @Test(.enabled(if: hasRedis, "redis-server is not installed"))
    func `the password is read from the credentials file, and a change waits while it is wrong`() throws {
        let server = try RemoteServerProcess(.redis)
        try setPassword(of: server, to: "secret")
        let (right, wrong) = (
            try open("right", password: "secret", of: server),
            try open("wrong", password: "other", of: server)
        )
        try right.put("value", forKey: "key right")
        waitUntil("it is sent") { right.directory.activity.remoteWrites == 1 }
        try wrong.put("value", forKey: "key wrong")
        waitUntil("it is denied") { wrong.directory.activity.remoteErrors > 0 }
        #expect(wrong.directory.remote?.waiting == 1 && wrong.directory.activity.remoteDrops == 0)
        try setPassword(of: server, to: "other", from: "secret")
        waitUntil("it is sent") { wrong.directory.activity.remoteWrites == 1 }
        #expect(wrong.directory.activity.remoteDrops == 0)
    }

    private func open(
        _ machine: String,
        password: String,
        of server: RemoteServerProcess
    ) throws -> SharedCache {
        let path = "\(directory.path)/credentials \(machine)"
        makeFile(path, "127.0.0.1:\(server.port) = :\(password)\n")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        var remote = CacheConfiguration.Remote(servers: [server.url])
        remote.credentials = path
        return try open(machine, remote)
    }

    /// Changes the password of Redis.
    private func setPassword(
        of server: RemoteServerProcess,
        to new: String,
        from old: String? = nil
    ) throws {
        let number = connected(to: server.port)
        defer { close(number) }
        for command in (old.map { ["AUTH \($0)\r\n"] } ?? []) + ["CONFIG SET requirepass \(new)\r\n"] {
            _ = send(number, command, command.utf8.count, 0)
            var answer = [UInt8](repeating: 0, count: 16)
            #expect(recv(number, &answer, 16, 0) == 5)
        }
    }
}
