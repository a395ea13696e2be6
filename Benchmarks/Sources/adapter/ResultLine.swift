// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc

/// What one worker, or all threads of one, did.
struct Measurement: Sendable {
    var histogram = Histogram()
    var hits = 0
    var misses = 0
    var errors = 0
    var begin: UInt64 = .max
    var end: UInt64 = 0
    var processorTime = ProcessorTime()

    mutating func merge(_ other: Measurement) {
        histogram.merge(other.histogram)
        hits += other.hits
        misses += other.misses
        errors += other.errors
        begin = min(begin, other.begin)
        end = max(end, other.end)
        // Each thread has counted the time of the whole process.
        processorTime.user = max(processorTime.user, other.processorTime.user)
        processorTime.system = max(processorTime.system, other.processorTime.system)
    }
}

/// One line of results, its fields named as in the adapter protocol; those that don't apply are left out.
struct ResultLine: Encodable {
    let system: String
    let workload: String
    var op: String
    let variant: String
    let sync: String
    let size: Int
    let procs: Int
    let proc: Int
    var threads: Int
    var mode: String?
    var ops: UInt64?
    var errs: Int?
    var hits: Int?
    var miss: Int?
    var p50_ns: Double?
    var p99_ns: Double?
    var mean_ns: Double?
    var ops_per_s: Double?
    var t0: UInt64?
    var t1: UInt64?
    var ucpu: UInt64?
    var scpu: UInt64?
    var open_ns: UInt64?
    var first_get_ns: UInt64?
    var ok: Int?
    var entries: Int?
    var removed: Int?
    var seconds: Double?
    var entries_per_s: Double?
    var computed: Int?
    var wall_ns: UInt64?
    var hist: [[UInt64]]?

    init(_ options: Options) {
        system = options.system
        workload = options.workload
        op = options.operation.rawValue
        variant = options.variant.rawValue
        sync = options.sync
        size = options.size
        procs = options.processes
        proc = options.process
        threads = options.threads
    }

    mutating func set(_ result: Measurement, withHistogram: Bool) {
        let elapsed = max(1e-9, Double(result.end - result.begin) / 1e9)
        ops = result.histogram.count
        errs = result.errors
        hits = result.hits
        miss = result.misses
        p50_ns = result.histogram.nanoseconds(atShare: 0.5)
        p99_ns = result.histogram.nanoseconds(atShare: 0.99)
        mean_ns = Double(result.histogram.sum) / Double(max(1, result.histogram.count))
        ops_per_s = Double(result.histogram.count) / elapsed
        t0 = result.begin
        t1 = result.end
        ucpu = result.processorTime.user
        scpu = result.processorTime.system
        if withHistogram { hist = result.histogram.pairs }
    }

    func write() throws {
        let encoder = JSONEncoder()
        print(String(decoding: try encoder.encode(self), as: UTF8.self))
        fflush(nil)
    }
}
