// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials

/// What a worker process does.
enum BenchTask: String, Codable, Sendable, CaseIterable {
    case get
    case put
    /// Nine gets for one put: what a cache that does its work sees.
    case mixed
    /// Six gets, three puts, one removal of ten: for stress tests, where misses are in order.
    case churn
    /// Collecting garbage, one sweep after the other, until it is killed.
    case collect
    /// `update`, adding 1 to a decimal number, over and over.
    case increment
    /// One `putIfAbsent`; a hit is a value stored.
    case claim

    /// Those that can be asked for by name.
    static let workloads: [BenchTask] = [.put, .get, .mixed]
}

/// All that a worker process is told: the argument of `diskcache bench-worker`.
struct WorkerPlan: Codable, Sendable {
    /// The cache.
    var directory: String
    var task: BenchTask
    /// Length of the values; not used with a corpus.
    var size = 4096
    var keys = 1000
    /// The directory whose files are the values.
    var corpus: String?
    /// Which keys are popular: the same for all.
    var seed: UInt64 = 1
    /// Which worker this is, and of its incarnations which: no two processes of a run have the same.
    var stream: UInt32
    /// It ends after so many operations.
    var operations: Int?
    /// Or after so long.
    var seconds: Double?
    /// Or when it has written so many bytes: a fast disk must not get full.
    var maximumBytes: Int64 = .max
    /// Of a hundred puts, how many write a value that has been written before.
    var repeatPercent = 0
    /// How often to report: a process that is killed has done what it has reported, and up to so much more.
    var reportMilliseconds = 200
}

/// What a worker writes to its standard output, one JSON object a line.
enum WorkerMessage: Codable, Sendable, Equatable {
    /// Everything is set up; it begins when its standard input ends after "go".
    case ready
    /// All that it has done so far.
    case report(WorkerReport)
    /// A value that was not right, said at once: its finder may be killed the next moment.
    case wrongValue(String)
    /// A call that threw.
    case failure(String)
    /// The last report: it has done what it was told.
    case finished(WorkerReport)

    var line: String {
        get throws {
            String(decoding: try JSONEncoder().encode(self), as: UTF8.self) + "\n"
        }
    }

    /// nil for a line that its writer did not live to end.
    init?(line: some Collection<UInt8>) {
        do {
            self = try JSONDecoder().decode(WorkerMessage.self, from: Data(line))
        } catch {
            return nil
        }
    }
}

/// What a worker has done since it began.
struct WorkerReport: Codable, Sendable, Equatable {
    var gets = LatencyHistogram()
    var puts = LatencyHistogram()
    var hits = 0
    var misses = 0
    var removals = 0
    /// Values that were not right.
    var wrong = 0
    /// Calls that threw.
    var failures = 0
    var bytesRead: Int64 = 0
    var bytesWritten: Int64 = 0
    /// Of a collector: sweeps, and what they have removed and left for the next.
    var sweeps = 0
    var removed = 0
    var spared = 0
    var skippedStripes = 0
    /// Workers that ended because they had written as much as they may.
    var cuts = 0

    /// Calls that came to an end, however they ended.
    var operations: Int { gets.count + puts.count + removals + failures }

    mutating func merge(_ other: WorkerReport) {
        gets.merge(other.gets)
        puts.merge(other.puts)
        hits += other.hits
        misses += other.misses
        removals += other.removals
        wrong += other.wrong
        failures += other.failures
        bytesRead += other.bytesRead
        bytesWritten += other.bytesWritten
        sweeps += other.sweeps
        removed += other.removed
        spared += other.spared
        skippedStripes += other.skippedStripes
        cuts += other.cuts
    }
}
