// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// What `doctor --bench` measures: how fast a file system serves a cache, in a second or two.
///
/// One process, values of 4 KiB, no memory tier, and a cache of its own in the `tmp` of the one in question: on the same file
/// system, with the same permissions, and what is stored there neither counts in its limits nor is evicted by them.
struct DirectoryBench {
    /// One operation: how often, and how long it took.
    struct Row: Encodable {
        let operation: String
        let count: Int
        let perSecond: Double
        let medianMicroseconds: Double
        let p99Microseconds: Double?
        /// What is usual for the median: from, to.
        let usualMicroseconds: [Double]

        /// - Parameter usual: for the median, from and to.
        init(
            _ operation: String,
            _ usual: [Double],
            _ histogram: LatencyHistogram,
            count: Int,
            in time: Duration
        ) {
            self.operation = operation
            self.count = count
            perSecond = Double(count) / max(time.inSeconds, 1e-9)
            medianMicroseconds = histogram.microseconds(atShare: 0.5) ?? 0
            // Of a single call there is none.
            p99Microseconds = histogram.count > 1 ? histogram.microseconds(atShare: 0.99) : nil
            usualMicroseconds = usual
        }

        /// Whether it takes longer than is usual.
        var isSlow: Bool { medianMicroseconds > usualMicroseconds[1] }
    }

    /// Bytes: a block of most file systems, what small values take in any case.
    static let valueSize = 4096

    /// Enough for a percentile, and with what puts replace 8 MiB on disk.
    static let valueCount = 1000

    /// For each operation: seven of them take two seconds at most, where a medium is slow.
    static let patience: Duration = .milliseconds(250)

    /// Bytes that must be free, so that it is not this that fills the disk: four times what it takes, with the control
    /// file and the directories.
    static let room: Int64 = 64 << 20

    private let cache: SharedCache
    private let values = SelfProvingValues(count: valueCount, size: valueSize)

    /// - Parameter path: of a directory that is there for nothing else.
    static func measure(at path: String, _ configuration: CacheConfiguration) throws -> [Row] {
        let bench = DirectoryBench(try SharedCache(at: path, configuration: configuration))
        return try bench.run()
    }

    private init(_ cache: SharedCache) {
        self.cache = cache
    }

    /// What is usual goes from a tenth to some ten times what was measured on ext4 (Benchmarks/RESULTS.md: 15 µs for a
    /// put, 2 µs for a get), as processors and media differ by that much.
    private func run() throws -> [Row] {
        // The directories of a new cache come with its first values: that is not what a put costs.
        _ = try measure("", usual: []) { (number, value: Data) in
            try cache.put(value, forKey: "first \(number)")
        }
        let started = Version(stream: 1, number: 0)
        let put = try measure("put of a new key", usual: [5, 150], started) { (number, value: Data) in
            try cache.put(value, forKey: values.key(number))
        }
        let other = Version(stream: 1, number: 1)
        let over = try measure("put over a key", usual: [5, 150], count: put.count, other) {
            (number, value: Data) in
            try cache.put(value, forKey: values.key(number))
        }
        let get = try measure("get", usual: [1, 20], count: put.count) { (number, _) in
            guard try cache.get(values.key(number)) != nil else {
                throw Failure(.dataError, "doctor: a value just stored is not there: see `diskcache bench`")
            }
        }
        let miss = try measure("get of a key that is not there", usual: [0.1, 5]) { (number, _) in
            _ = try cache.get("none \(number)")
        }
        return [put, over, get, miss] + (try collections(usual: [0.5, 20], [5, 300]))
    }

    /// Times `body` with the numbers from 0 on and a value made before, until it is late.
    private func measure(
        _ operation: String,
        usual: [Double],
        count: Int = valueCount,
        _ version: Version = .initial,
        _ body: (Int, Data) throws -> Void
    ) throws -> Row {
        let clock = ContinuousClock()
        var (histogram, time) = (LatencyHistogram(), Duration.zero)
        for number in 0..<count where time < Self.patience {
            let value = values.value(number, version: version)
            let taken = try clock.measure { try body(number, value) }
            histogram.record(nanoseconds: taken.saturatingNanoseconds)
            time += taken
        }
        return Row(operation, usual, histogram, count: histogram.count, in: time)
    }

    /// A collection takes as long as what it looks at, so its time is told for each key.
    private func collections(usual staying: [Double], _ going: [Double]) throws -> [Row] {
        // What the puts over keys have left goes first: it is part of the price of putting.
        _ = try cache.collectGarbage()
        let keys = try cache.collectGarbage().entries.count
        var half = GarbageCollection()
        half.maximumEntries = keys / 2
        let requests = [
            ("gc, for each key that stays", GarbageCollection(), staying, keys),
            ("gc, for each key that goes", half, going, keys - keys / 2),
        ]
        return try requests.filter { $0.3 > 0 }.map { operation, request, usual, count in
            let time = try ContinuousClock().measure { _ = try cache.collectGarbage(request) }
            var histogram = LatencyHistogram()
            histogram.record(nanoseconds: time.saturatingNanoseconds / Int64(count))
            return Row(operation, usual, histogram, count: count, in: time)
        }
    }

    // MARK: Text

    static func text(_ rows: [Row]) -> String {
        var table = Table(.left, .right, .right, .right, .left)
        table.add("OPERATION, 4 KiB", "PER SECOND", "MEDIAN µs", "P99 µs", "USUAL µs")
        for row in rows {
            table.add(
                row.operation,
                Quantity.grouped(Int(row.perSecond)),
                number(row.medianMicroseconds),
                row.p99Microseconds.map(number) ?? "-",
                row.usualMicroseconds.map(number).joined(separator: "–")
                    + (row.isSlow ? "  SLOW" : "")
            )
        }
        return table.text
    }

    private static func number(_ value: Double) -> String {
        value >= 10 ? "\(Int(value.rounded()))" : "\((value * 10).rounded() / 10)"
    }
}
