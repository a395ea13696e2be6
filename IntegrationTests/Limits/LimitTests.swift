// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Platform
import Probes
import TestSupport
import Testing

/// Tests of limits under the load of several processes, which is much larger with `DISKCACHE_SOAK=1`.
@Suite(.serialized, .takesTurns)
struct DirectoryLimitTests {
    private let place: TemporaryDirectory
    private let path: String

    init() throws {
        place = try TemporaryDirectory()
        path = place.path + "/cache"
    }

    private func limit(_ change: (inout CacheLimits) -> Void) throws {
        var configuration = CacheConfiguration()
        configuration.janitor.isEnabled = false
        configuration.janitor.joinsSession = false
        try SharedCache(at: path, configuration: configuration)
            .directory.updateLimits { (limits) throws(CacheError) in change(&limits) }
    }

    /// Returns the size of the directory in bytes according to `du`.
    private func diskUsage() throws -> Int {
        let output = try BuiltCommand.run("/usr/bin/du", ["-s", "-B1", path]).output
        return Int(output.prefix { $0.isNumber }) ?? 0
    }

    /// Returns the number of bytes that all processes together have stored so far.
    private func bytesWritten() throws -> Int { try total("bytesWritten") }

    /// Returns the number of puts of all processes together.
    private func puts() throws -> Int { try total("puts") }

    private func total(_ name: String) throws -> Int {
        let words = ["--dir", path, "stats", "--quick", "--json"]
        let output = try BuiltCommand.run(BuiltCommand.path, words).output
        let stats = try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any]
        return try #require((stats?["totals"] as? [String: Any])?[name] as? Int)
    }

    private func probe(_ role: LoadRole, _ number: Int, _ arguments: String...) throws -> LoadProcess {
        try LoadProcess([role.rawValue, path, "\(number)"] + arguments)
    }

    // MARK: Size

    @Test func `eight writers at full speed stay within the size limit, lose no put, and spare hot values`()
        throws
    {
        let limit = (isSoak ? 256 : 64) << 20
        try self.limit { $0.maximumSize = .bytes(limit) }
        let writers = try (0..<8).map { try probe(.write, $0, "65536") }
        let readers = try (8..<10).map { try probe(.read, $0, "65536") }
        var samples: [Int] = []
        // Until the writers have stored several times the limit.
        while try bytesWritten() < limit * (isSoak ? 20 : 3) {
            samples.append(try diskUsage())
            usleep(50_000)
        }
        samples.append(try diskUsage())
        let reports = try (writers + readers).map { try $0.finish() }
        #expect(samples.max() ?? 0 <= limit + limit / 20, "\(samples)")
        let full = try #require(samples.firstIndex { $0 > limit * 9 / 10 }, "it was filled: \(samples)")
        #expect(samples[full...].min() ?? 0 >= limit * 8 / 10, "\(samples)")
        #expect(reports.allSatisfy { $0.failures == 0 }, "\(reports.compactMap(\.failure))")
        // Values that the readers use all the time are not evicted.
        let (gets, hits) = reports[8...].reduce((0, 0)) { ($0.0 + $1.operations, $0.1 + $1.hits) }
        #expect(hits * 100 >= gets * 90, "\(hits) of \(gets)")
        let cache = try SharedCache(at: path)
        #expect(try cache.directory.verify().isClean)
        print(
            "puts",
            reports[..<8].reduce(0) { $0 + $1.operations },
            "readers' p99 µs",
            reports[8...].map(\.p99)
        )
    }

    /// Makes 300,000 puts with `DISKCACHE_SOAK=1`, and 5,000 otherwise.
    @Test func `writers of long keys with tags stay within the size limit despite kills`() throws {
        let limit = (isSoak ? 64 : 24) << 20
        try self.limit { $0.maximumSize = .bytes(limit) }
        func start(_ number: Int) throws -> LoadProcess { try probe(.mixed, number, "9000", "4000") }
        var writers = try (0..<8).map(start)
        var samples: [Int] = []
        var (kills, next) = (0, 8)
        // Beside other tests the writers may store all of this before the first kill.
        while try puts() < (isSoak ? 300_000 : 5_000) || kills < 3 {
            samples.append(try diskUsage())
            usleep(50_000)
            guard samples.count.isMultiple(of: 4) else { continue }
            writers.removeFirst().kill()
            writers.append(try start(next))
            (kills, next) = (kills + 1, next + 1)
        }
        samples.append(try diskUsage())
        let reports = try writers.map { try $0.finish() }
        let most = samples.max() ?? 0
        print("puts", try puts(), "kills", kills, "most", Double(most) / Double(limit))
        #expect(most <= limit + limit / 20, "\(samples)")
        #expect(most >= limit * 8 / 10, "it was filled: \(samples)")
        #expect(reports.allSatisfy { $0.failures == 0 }, "\(reports.compactMap(\.failure))")
        let cache = try SharedCache(at: path)
        #expect(try cache.directory.verify().isClean)
        try cache.directory.collect()
        #expect(try FileManager.default.contentsOfDirectory(atPath: path + "/tmp").isEmpty)
    }

    @Test func `running workers obey a limit that another process sets`() throws {
        let workers = try (0..<3).map { try probe(.write, $0, "65536") }
        while try diskUsage() < 50 << 20 { usleep(20_000) }
        let command = try BuiltCommand.run(
            BuiltCommand.path,
            ["--dir", path, "config", "set", "max-size", "32M"]
        )
        #expect(command.status == 0)
        try waitUntil("they obey the limit") { try diskUsage() <= 32 << 20 }
        let reports = try workers.map { try $0.finish() }
        #expect(reports.allSatisfy { $0.failures == 0 }, "\(reports.compactMap(\.failure))")
    }

    // MARK: Order

    /// Values that are requested in memory must not look unused on disk, and the least recently used values must be evicted.
    @Test func `several processes with their own memory tiers hit as often as an exact LRU list`() throws {
        let capacity = 1000
        try limit { $0.maximumEntries = capacity }
        let workers = try (0..<3).map { try probe(.zipf, $0, "512", "8000", "60") }
        usleep(isSoak ? 30_000_000 : 4_000_000)
        let reports = try workers.map { try $0.finish() }
        #expect(reports.allSatisfy { $0.failures == 0 }, "\(reports.compactMap(\.failure))")
        let requests = reports.flatMap(\.requests).sorted { $0.time < $1.time }
        // The first quarter of the requests fills the cache.
        let counted = requests.count / 4
        let ours = requests[counted...].count(where: \.isHit)
        let exact = LeastRecentlyUsed.hits(
            requests.map(\.key),
            high: capacity * 95 / 100,
            low: capacity * 9 / 10
        )
        let theirs = exact[counted...].count(where: \.self)
        let points = 100 * Double(ours - theirs) / Double(requests.count - counted)
        print("requests", requests.count, "hit ratio in points above exact LRU:", points)
        #expect(points >= -1, "\(ours) and \(theirs) of \(requests.count - counted)")
    }
}

/// A load in a separate process.
private final class LoadProcess {
    private let process = Process()
    private let input = Foundation.Pipe()
    private let output = Foundation.Pipe()

    init(_ arguments: [String]) throws {
        process.executableURL = URL(fileURLWithPath: BuiltCommand.probes)
        process.arguments = ["load"] + arguments
        process.standardInput = input
        process.standardOutput = output
        try process.run()
    }

    deinit {
        if process.isRunning { process.terminate() }
        process.waitUntilExit()
    }

    func kill() {
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    func finish() throws -> LoadReport {
        try input.fileHandleForWriting.close()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return try JSONDecoder().decode(LoadReport.self, from: data)
    }
}

/// An exact LRU list of all keys, whose hits are the reference for the cache.
private struct LeastRecentlyUsed {
    private var newer: [Int: Int] = [:]
    private var older: [Int: Int] = [:]
    private var (oldest, newest) = (-1, -1)

    /// Returns whether each request is a hit; over `high` keys the list evicts down to `low`, as the cache does at its
    /// marks.
    static func hits(_ keys: [Int], high: Int, low: Int) -> [Bool] {
        var list = LeastRecentlyUsed()
        return keys.map { key in
            let isHit = list.older[key] != nil
            if isHit { list.remove(key) }
            list.append(key)
            if list.older.count > high { while list.older.count > low { list.remove(list.oldest) } }
            return isHit
        }
    }

    private mutating func remove(_ key: Int) {
        let (before, after) = (older[key] ?? -1, newer[key] ?? -1)
        if before >= 0 { newer[before] = after } else { oldest = after }
        if after >= 0 { older[after] = before } else { newest = before }
        (older[key], newer[key]) = (nil, nil)
    }

    private mutating func append(_ key: Int) {
        (older[key], newer[key]) = (newest, -1)
        if newest >= 0 { newer[newest] = key } else { oldest = key }
        newest = key
    }
}
