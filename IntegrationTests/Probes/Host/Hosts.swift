// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Synchronization
import TestSupport

/// The observations of a host program.
struct HostReport: Codable, Sendable {
    var heartbeat = Heartbeat.Report()
    /// The number of puts, and of reads, that ended while the locks were held.
    var earlyPuts = 0
    var reads = 0
    /// The number of puts that eventually succeeded.
    var puts = 0
}

/// A counter that tasks increment.
final class Count: Sendable {
    private let number = Atomic<Int>(0)
    var value: Int { number.load(ordering: .relaxed) }
    func add() { number.add(1, ordering: .relaxed) }
}

/// A program whose puts all wait for a lock, as if its holder were a stopped process.
struct BlockedHost {
    private static let tasks = 64
    /// The number of the task's beats for which the test waits.
    private static let beats = 50
    /// The number of the thread's beats, twenty times as many, after which the test no longer waits for the task.
    private static let patience = 1000

    private let path: String
    private let cache: SharedCache
    private let heartbeat = Heartbeat()
    private let reads = Count()
    private let puts = Count()

    init(_ path: String) async throws {
        self.path = path
        var configuration = CacheConfiguration()
        configuration.memory = .none
        cache = try await SharedCache.open(at: path, configuration: configuration)
        for index in 0..<Self.tasks { try await cache.put("value \(index)", forKey: "key \(index)") }
    }

    func run() async throws -> HostReport {
        let locks = try holdStripes()
        let putting = (0..<Self.tasks).map { index in Task { await put(index) } }
        let reading = (0..<Self.tasks).map { index in Task { await read(index) } }
        // On a thread, because possibly no task gets to run.
        let beats = heartbeat
        var report = await withCheckedContinuation { continuation in
            Thread.detachNewThread { [reads, puts] in
                while beats.threadBeats < Self.patience,
                    beats.beats < Self.beats || reads.value < Self.tasks
                {
                    usleep(20_000)
                }
                continuation.resume(
                    returning: HostReport(
                        heartbeat: beats.end(),
                        earlyPuts: puts.value,
                        reads: reads.value
                    )
                )
            }
        }
        for lock in locks { close(lock) }
        for task in putting + reading { await task.value }
        report.puts = puts.value
        await cache.close()
        return report
    }

    /// Retries a put until it succeeds, so that the test does not depend on how long a put waits.
    private func put(_ index: Int) async {
        while true {
            do {
                try await cache.put("value \(index)", forKey: "key \(index)")
                puts.add()
                return
            } catch {
                if error.code != .busy { fatalError("\(error)") }
            }
        }
    }

    private func read(_ index: Int) async {
        do {
            guard try await cache.entry(forKey: "key \(index)") != nil,
                try await cache.get(forKey: "key \(index)") != nil
            else { fatalError("key \(index) is gone") }
            reads.add()
        } catch {
            fatalError("\(error)")
        }
    }

    /// Locks all stripes with separate descriptors, as another process would.
    private func holdStripes() throws -> [Int32] {
        let directory = path + "/locks"
        return try FileManager.default.contentsOfDirectory(atPath: directory).filter {
            $0.hasPrefix("object-") || $0.hasPrefix("entry-")
        }.map { name in
            let file = open(directory + "/" + name, O_RDWR | O_CLOEXEC)
            guard file >= 0, flock(file, LOCK_EX | LOCK_NB) == 0 else { fatalError("can't lock \(name)") }
            return file
        }
    }
}

/// A program that has used up its 20 descriptors while calls are in progress.
///
/// While work waits for threads, Dispatch checks its threads once a second, and ends the process if it can't. So the
/// program runs no tasks in the meantime, only the library does.
struct ExhaustedHost {
    private static let tasks = 64

    private let cache: SharedCache

    init(_ path: String) async throws {
        cache = try await SharedCache.open(at: path)
        try await cache.put("value", forKey: "key")
    }

    func run() async throws -> HostReport {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = 20
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        // These puts wait while the pipe is open; some of them get no descriptor.
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { fatalError("no pipe") }
        let (source, sink) = (ends[0], ends[1])
        let cache = cache
        let putting = (0..<Self.tasks).map { index in
            Task {
                do throws(CacheError) {
                    _ = try await cache.blocking { (cache) throws(CacheError) in
                        try cache.put(contentsOfDescriptor: source, forKey: "key \(index)")
                    }
                } catch {
                    guard error.code == .inputOutput, error.errno == EMFILE else { fatalError("\(error)") }
                }
            }
        }
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                usleep(500_000)
                var fillers: [Int32] = []
                while true {
                    let filler = dup(source)
                    if filler < 0 { break }
                    fillers.append(filler)
                }
                Self.writeBehind(cache)
                usleep(2_500_000)
                for filler in fillers { close(filler) }
                close(sink)
                continuation.resume()
            }
        }
        for task in putting { await task.value }
        close(source)
        await cache.flush()
        try await cache.put("value", forKey: "afterwards")
        var report = HostReport()
        report.puts = Self.tasks
        if try await cache.get(forKey: "afterwards") != nil { report.reads = 1 }
        await cache.close()
        return report
    }

    private static func writeBehind(_ cache: SharedCache) {
        for index in 0..<100 {
            do { try cache.put("late", forKey: "late \(index)", options: PutOptions(writing: .behind)) } catch
            {
                fatalError("\(error)")
            }
        }
    }
}

/// A program that opens a cache at a relative path, and then changes the working directory.
struct MovingHost {
    private let directory: String

    init(_ directory: String) {
        self.directory = directory
    }

    func run() throws -> HostReport {
        guard mkdir(directory, 0o700) == 0, chdir(directory) == 0 else { fatalError("chdir \(directory)") }
        let cache = try SharedCache(at: "relative")
        try cache.put("value", forKey: "key", options: PutOptions(keeps: .diskOnly))
        guard mkdir("elsewhere", 0o700) == 0, chdir("elsewhere") == 0 else { fatalError("elsewhere") }
        var report = HostReport()
        // The background thread makes this check once a second, and reopens the path if it fails.
        let isCurrent = try cache.withStore { (store, _) throws(CacheError) in try store.directory.isCurrent()
        }
        if isCurrent { report.reads += 1 }
        if try cache.get(forKey: "key") != nil { report.reads += 1 }
        if cache.directory.path == "\(directory)/relative" { report.reads += 1 }
        cache.close()
        return report
    }
}

/// A program whose puts all wait for the storage device.
struct DurableHost {
    private static let tasks = 256
    private static let puts = 4

    private let cache: SharedCache

    init(_ path: String) async throws {
        var configuration = CacheConfiguration()
        configuration.durability = .fsync
        cache = try await SharedCache.open(at: path, configuration: configuration)
    }

    func run() async throws -> HostReport {
        // Created in advance, so that the tasks only wait.
        let values = (0..<Self.tasks * Self.puts).map { Data(repeating: 1, count: 4096) + Data("\($0)".utf8) }
        let heartbeat = Heartbeat()
        var report = HostReport()
        report.puts = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<Self.tasks {
                group.addTask {
                    for round in 0..<Self.puts {
                        let index = number * Self.puts + round
                        try await cache.put(values[index], forKey: "\(index)")
                    }
                    return Self.puts
                }
            }
            return try await group.reduce(0, +)
        }
        report.heartbeat = heartbeat.end()
        await cache.close()
        return report
    }
}

/// A program that handles its crashes, and whose closure crashes on a library thread.
struct CrashingHost {
    let path: String

    init(_ path: String) {
        self.path = path
    }

    func run() async throws -> HostReport {
        signal(SIGSEGV) { _ in _exit(7) }
        let cache = try await SharedCache.open(at: path)
        _ = try await cache.update(forKey: "key") { (_: CacheHit<Data>?) -> Computed<Data>? in
            UnsafeMutablePointer<UInt8>(bitPattern: 16)?.pointee = 1
            return nil
        }
        return HostReport()
    }
}
