// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Platform

/// What `diskcache bench` is to do.
struct BenchPlan: Sendable {
    var workers = 4
    /// Of each workload with each size: three workloads with two sizes make 15 seconds.
    var seconds: Double? = 2.5
    /// Of each worker, instead of a time.
    var operations: Int?
    var sizes = [4096, 65536]
    var keys = 1000
    var workloads = BenchTask.workloads
    var seed: UInt64 = 1
    var repeatPercent = 0
    var corpus: String?
    var killInterval: Duration?
    var isCollecting = false
    var isKept = false

    static let options: [Option] = [
        Option("workers", "w", "N", help: "processes, at most 256 (default 4)"),
        Option("seconds", "s", "S", help: "time for each workload and size (default 2.5)"),
        Option("operations", "n", "N", help: "end after so many of each worker instead"),
        Option("sizes", nil, "SIZES", help: "lengths of values (default 4K,64K)"),
        Option("keys", nil, "N", help: "keys for each size (default 1000)"),
        Option(
            "workload",
            nil,
            "NAMES",
            choices: BenchTask.workloads.map(\.rawValue),
            help: "put, get, mixed (default all)"
        ),
        Option("repeat", nil, "PERCENT", help: "puts of bytes that were put before (default 0)"),
        Option("seed", nil, "N", help: "another sequence of keys (default 1)"),
        Option("corpus", nil, "DIR", help: "values: the files below DIR, 256 MiB at most"),
        Option("gc", help: "a further process collects garbage all the time"),
        Option("kill", nil, "SPAN", help: "kill a process that often, and start another"),
        Option("keep", "k", help: "leave the directory where it is"),
        Option.json,
    ]

    /// The defaults.
    init() {}

    init(_ arguments: Arguments) throws(Failure) {
        workers = try arguments.value("workers", as: Self.workerCount) ?? workers
        seconds =
            try arguments.value("seconds", as: Self.positiveDuration).map { $0 / .seconds(1) } ?? seconds
        if let given = try arguments.value("operations", as: Self.positive) {
            guard !arguments.has("seconds") else {
                throw .usage("bench: --seconds and --operations are both the end: give one of them")
            }
            operations = given
            seconds = nil
        }
        sizes = try arguments.value("sizes", as: Self.sizes) ?? sizes
        keys = try arguments.value("keys", as: Self.positive) ?? keys
        workloads = try arguments.value("workload", as: Self.workloads) ?? workloads
        seed = UInt64(try arguments.value("seed", as: Quantity.count) ?? Int(seed))
        repeatPercent = try arguments.value("repeat", as: Self.percent) ?? repeatPercent
        killInterval = try arguments.value("kill", as: Self.positiveDuration)
        corpus = arguments.value("corpus")
        if corpus != nil, arguments.has("sizes") || arguments.has("keys") {
            throw .usage("bench: --corpus brings its own keys and sizes: leave out --sizes and --keys")
        }
        isCollecting = arguments.has("gc")
        isKept = arguments.has("keep")
    }

    /// Each is a process with two pipes: more than these help no machine, and may harm it.
    private static let mostWorkers = 256

    private static func workerCount(_ text: String) throws(Failure) -> Int {
        let count = try Quantity.count(text)
        guard (1...mostWorkers).contains(count) else {
            throw .usage("\(text): it must be at least 1 and at most \(mostWorkers)")
        }
        return count
    }

    private static func positive(_ text: String) throws(Failure) -> Int {
        let count = try Quantity.count(text)
        // Far more than any machine's processes or memory; sums of it must not overflow.
        guard (1...1_000_000_000).contains(count) else {
            throw .usage("\(text): it must be at least 1 and at most 1000000000")
        }
        return count
    }

    private static func positiveDuration(_ text: String) throws(Failure) -> Duration {
        let duration = try Quantity.duration(text)
        guard duration > .zero else { throw .usage("\(text): it must be more than 0") }
        return duration
    }

    private static func percent(_ text: String) throws(Failure) -> Int {
        let count = try Quantity.count(text)
        guard count <= 100 else { throw .usage("\(text): it must be at most 100") }
        return count
    }

    private static func sizes(_ text: String) throws(Failure) -> [Int] {
        var sizes: [Int] = []
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            let bytes = try Quantity.size(String(word)).bytes
            guard (Int64(SelfProvingValues.smallest)...(1 << 30)).contains(bytes) else {
                throw .usage(
                    "\(word): a value has at least \(SelfProvingValues.smallest) bytes and at most 1G"
                )
            }
            sizes.append(Int(bytes))
        }
        return sizes
    }

    private static func workloads(_ text: String) throws(Failure) -> [BenchTask] {
        var workloads: [BenchTask] = []
        for word in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let task = BenchTask(rawValue: String(word)), BenchTask.workloads.contains(task) else {
                throw .usage("unknown workload '\(word)': give put, get or mixed")
            }
            workloads.append(task)
        }
        return workloads
    }
}
