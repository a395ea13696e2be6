// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport
import Testing

enum Tracer {
    static let works = (try? trace(["true"])) != nil

    /// Returns the counts of all calls that a command makes, or of those of its first thread if `follows` is false.
    static func trace(
        _ command: [String],
        environment: [String: String] = [:],
        follows: Bool = true
    ) throws -> [String: Int] {
        let directory = try TemporaryDirectory()
        let log = directory.path + "/calls"
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["strace"] + (follows ? ["-f"] : []) + ["-qq", "-o", log] + command
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CocoaError(.executableNotLoadable) }
        var counts: [String: Int] = [:]
        for line in try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n") {
            // "1234 openat2(5, …) = 7"; older versions of strace write unknown calls as "syscall_0x1d0(".
            let call = line.drop { $0.isNumber || $0 == " " }.prefix { $0 != "(" }
            counts[String(call), default: 0] += 1
        }
        return counts
    }
}

/// Tests of the system call counts in the documentation, with strace(1).
@Suite(.enabled(if: Tracer.works, "strace is not installed, or tracing is not allowed"), .takesTurns)
struct SystemCallTests {
    /// Returns the calls of one repetition of an operation: the difference between 250 and 50 of them, divided by 200.
    private func calls(
        _ operation: String,
        sidecar: Bool = false,
        durable: Bool = false,
        hasShards: Bool = false,
        ofFirstThread: Bool = false
    ) throws -> [String: Int] {
        let directory = try TemporaryDirectory()
        var environment = sidecar ? ["DISKCACHE_METADATA": "sidecar"] : [:]
        if durable { environment["DISKCACHE_DURABLE"] = "1" }
        func run(_ times: Int) throws -> [String: Int] {
            let path = directory.path + "/cache-\(times)"
            if hasShards { try makeShards(of: path) }
            return try Tracer.trace(
                [BuiltCommand.probes, "systemCalls", path, operation, "\(times)"],
                environment: environment,
                follows: !ofFirstThread
            )
        }
        let few = try run(50)
        let many = try run(250)
        // Memory that the allocator requests now and then belongs to no operation, and neither does a new shard.
        let incidental: Set<String> = ["mmap", "munmap", "brk", "madvise", "mprotect", "mkdirat"]
        return many.reduce(into: [:]) { result, count in
            let difference = count.value - (few[count.key] ?? 0)
            let perOperation = Int((Double(difference) / 200).rounded())
            if perOperation > 0, !incidental.contains(count.key) { result[count.key] = perOperation }
        }
    }

    /// Creates the cache with all shards, which the first put in each would create otherwise.
    private func makeShards(of path: String) throws {
        try #require(
            try BuiltCommand.run(BuiltCommand.probes, ["systemCalls", path, "key", "0"]).status == 0
        )
        for part in ["objects", "entries"] {
            for shard in 0..<256 {
                try FileManager.default.createDirectory(
                    atPath: path + "/" + part + String(format: "/%02x", shard),
                    withIntermediateDirectories: true,
                    attributes: [.posixPermissions: 0o700]
                )
            }
        }
    }

    private func total(_ calls: [String: Int]) -> Int {
        calls.values.reduce(0, +)
    }

    @Test func `a hit with a known record takes three system calls: open, read, close`() throws {
        let calls = try calls("get")
        #expect(total(calls) == 3, "\(calls)")
    }

    @Test func `a repeated miss takes no system call, for a new key and for a removed one`() throws {
        let absent = try calls("miss")
        #expect(total(absent) == 0, "\(absent)")
        // Repeated calls are counted: the first one has found that there is no entry.
        let removed = try calls("miss-removed")
        #expect(total(removed) == 0, "\(removed)")
    }

    @Test func `contains takes two system calls`() throws {
        let calls = try calls("contains")
        #expect(total(calls) == 2, "\(calls)")
    }

    @Test func `overwriting with equal content takes eleven system calls`() throws {
        let calls = try calls("overwrite")
        #expect(total(calls) == 11, "\(calls)")
    }

    @Test func `overwriting repeatedly with new bytes takes thirteen system calls`() throws {
        let calls = try calls("replace", hasShards: true)
        #expect(total(calls) == 13, "\(calls)")
    }

    @Test func `new bytes under a new key take thirteen calls, and a few more in a new shard`() throws {
        let calls = try calls("new", hasShards: true)
        #expect(total(calls) == 13, "\(calls)")
        let few = try self.calls("new")
        #expect((13...16).contains(total(few)), "\(few)")
    }

    @Test func `a put in the background takes no system call in its thread`() throws {
        let calls = try calls("behind", ofFirstThread: true)
        #expect(total(calls) == 0, "\(calls)")
    }

    @Test func `a put in memory alone takes five system calls`() throws {
        let calls = try calls("memory-only")
        #expect(total(calls) == 5, "\(calls)")
    }

    @Test func `a touch takes seven system calls`() throws {
        let calls = try calls("touch")
        #expect(total(calls) == 7, "\(calls)")
    }

    @Test func `in sidecar form hits and repeated misses take no more system calls`() throws {
        let hit = try calls("get", sidecar: true)
        #expect(total(hit) == 3, "\(hit)")
        let removed = try calls("miss-removed", sidecar: true)
        #expect(total(removed) == 0, "\(removed)")
    }

    @Test func `reading an entry takes three system calls, and so does removing an absent key`() throws {
        let entry = try calls("entry")
        #expect(total(entry) == 3, "\(entry)")
        let removal = try calls("remove")
        #expect(total(removal) == 3, "\(removal)")
    }

    /// Removes 100,000 values with `DISKCACHE_SOAK=1`, as in a large namespace.
    @Test func `removing all values takes as many system calls whatever their number`() throws {
        func calls(removing count: Int) throws -> Int {
            let directory = try TemporaryDirectory()
            let path = directory.path + "/cache"
            try #require(
                try BuiltCommand.run(BuiltCommand.probes, ["systemCalls", path, "fill", "\(count)"]).status
                    == 0
            )
            let calls = try Tracer.trace([BuiltCommand.probes, "systemCalls", path, "remove-all", "1"])
            let cache = try SharedCache(at: path)
            #expect(try cache.get(forKey: "fill 0") == nil)
            #expect(try cache.entries().allSatisfy { _ in false })
            return total(calls)
        }
        let (few, many) = (try calls(removing: 10), try calls(removing: isSoak ? 100_000 : 2000))
        #expect(abs(many - few) < 50, "\(few) for 10, \(many) for many")
    }

    @Test func `taking a free lock and releasing it takes eleven system calls`() throws {
        let calls = try calls("lock")
        #expect(total(calls) == 11, "\(calls)")
    }

    @Test func `a durable put syncs object, entry and names, and other puts sync nothing`() throws {
        let durable = try calls("new", durable: true)
        #expect(durable["fdatasync"] == 1, "\(durable)")
        // The object's shard and `objects`, the entry itself, its shard and `entries`.
        #expect(durable["fsync"] == 5, "\(durable)")
        let present = try calls("overwrite", durable: true)
        #expect(present["fdatasync"] == 2, "\(present)")
        let ordinary = try calls("new")
        #expect(ordinary["fdatasync"] == nil && ordinary["fsync"] == nil, "\(ordinary)")
    }
}
