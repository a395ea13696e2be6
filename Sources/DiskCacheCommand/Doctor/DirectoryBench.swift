// SPDX-License-Identifier: Apache-2.0

import DiskCache
import FoundationEssentials
import Platform

/// The measurement of `doctor --bench`: how fast a file system serves a cache, in a second or two.
///
/// It uses one process, values of 4 KiB, no memory tier, and a separate cache in the `tmp` of the real one: on the same file
/// system, with the same permissions. Its values don't count towards the limits, and no limit evicts them.
struct DirectoryBench {
    /// One operation, with its count and durations.
    struct Row: Encodable {
        let operation: String
        let count: Int
        let perSecond: Double
        let medianMicroseconds: Double
        /// nil for a single call.
        let p99Microseconds: Double?
        /// The usual range of the median: from, to.
        let usualMicroseconds: [Double]

        /// Creates the row of an operation.
        ///
        /// - Parameters:
        ///   - usual: The usual range of the median.
        ///   - times: The duration of each call; at least one.
        ///   - keys: The number of keys that each call processes.
        init(_ operation: String, _ usual: ClosedRange<Double>, _ times: [Duration], keys: Int = 1) {
            let sorted = times.sorted()
            func microseconds(_ share: Double) -> Double {
                let time = sorted[min(sorted.count - 1, Int(share * Double(sorted.count)))]
                return time / .microseconds(1) / Double(keys)
            }
            self.operation = operation
            count = times.count * keys
            perSecond = Double(count) / max(times.reduce(.zero, +) / .seconds(1), 1e-9)
            medianMicroseconds = microseconds(0.5)
            p99Microseconds = times.count > 1 ? microseconds(0.99) : nil
            usualMicroseconds = [usual.lowerBound, usual.upperBound]
        }

        /// Whether the operation takes longer than usual.
        var isSlow: Bool { medianMicroseconds > usualMicroseconds[1] }
    }

    /// The number of values: enough for a percentile; 8 MiB on disk, including replaced values.
    static let valueCount = 1000

    /// The time limit of one operation, so that all seven take at most two seconds, however slow the disk is.
    static let patience: Duration = .milliseconds(250)

    /// The number of bytes that must be free, so that the benchmark never fills the disk.
    ///
    /// It is four times the required space, including the control file and the directories.
    static let room: Int64 = 64 << 20

    private let cache: SharedCache

    /// Measures in the `tmp` of `cache`, which must have ``room``, and leaves no files there, even after Ctrl-C.
    static func run(in cache: SharedCache, _ configuration: CacheConfiguration) throws -> [Row] {
        // First, so that no signal can end this process while the directory exists.
        let signals = try HeldSignals([.hangup, .interrupt, .terminate])
        let random = UInt32.random(in: 0...(.max))
        let path = "\(cache.path)/tmp/diskcache-bench-\(CurrentProcess.identifier)-\(random)"
        do throws(Errno) {
            try Directory.make(path, mode: 0o700)
        } catch {
            throw Failure(
                .cannotCreate,
                "doctor: create \(path): \(error): see what `diskcache doctor` finds"
            )
        }
        let rows = Result {
            try DirectoryBench(cache: SharedCache(at: path, configuration: configuration)).rows()
        }
        do {
            try FileManager.default.removeItem(atPath: path)
        } catch {
            throw Failure(.inputOutput, "doctor: remove \(path): \(error): remove it by hand")
        }
        if let received = signals.next() { CurrentProcess.end(like: received.signal) }
        return try rows.get()
    }

    /// Measures all operations.
    ///
    /// The usual ranges are from about a tenth to ten times the values measured on ext4 (Benchmarks/RESULTS.md: 15 µs for a
    /// put, 2 µs for a get), because processors and disks differ by that much.
    private func rows() throws -> [Row] {
        // A new cache creates its directories with its first values, which is not part of the cost of a put.
        _ = try measure("first", 0...0) { try cache.put($1, forKey: "first \($0)") }
        let put = try measure("put of a new key", 5...150) { try cache.put($1, forKey: "key \($0)") }
        let over = try measure("put of an existing key", 5...150, count: put.count) {
            try cache.put($1, forKey: "key \($0)")
        }
        let get = try measure("get", 1...20, count: put.count) { number, _ in
            guard try cache.get(forKey: "key \(number)") != nil else {
                throw Failure(.dataError, "doctor: a value just stored is missing: run `diskcache bench`")
            }
        }
        let miss = try measure("get of a missing key", 0.1...5) { number, _ in
            _ = try cache.get(forKey: "none \(number)")
        }
        return [put, over, get, miss] + (try collections())
    }

    /// Measures `body`, called with numbers from 0 on and new values of 4 KiB, until the time limit.
    private func measure(
        _ operation: String,
        _ usual: ClosedRange<Double>,
        count: Int = valueCount,
        _ body: (Int, Data) throws -> Void
    ) throws -> Row {
        let clock = ContinuousClock()
        var (times, sum) = ([Duration](), Duration.zero)
        for number in 0..<count where sum < Self.patience {
            let value = noise(count: 4096, seed: .random(in: 0...(.max)))
            let time = try clock.measure { try body(number, value) }
            times.append(time)
            sum += time
        }
        return Row(operation, usual, times)
    }

    /// Measures collections, with the time divided by the number of keys.
    private func collections() throws -> [Row] {
        // The first collection removes the replaced values, which belongs to the cost of those puts.
        _ = try cache.directory.collect()
        let keys = try cache.directory.collect().entries.count
        var half = CollectionOptions()
        half.maximumEntries = keys / 2
        let requests = [
            ("gc, per key kept", CollectionOptions(), 0.5...20.0, keys),
            ("gc, per key evicted", half, 5.0...300, keys - keys / 2),
        ]
        return try requests.filter { $0.3 > 0 }.map { operation, request, usual, keys in
            let time = try ContinuousClock().measure { _ = try cache.directory.collect(request) }
            return Row(operation, usual, [time], keys: keys)
        }
    }

    // MARK: Text

    static func text(_ rows: [Row]) -> String {
        var table = Table(.left, .right, .right, .right, .left)
        table.add("OPERATION, 4 KiB", "PER SECOND", "MEDIAN µs", "P99 µs", "USUAL µs")
        for row in rows {
            table.add(
                row.operation,
                Quantity.grouped(Int(row.perSecond.rounded())),
                number(row.medianMicroseconds),
                row.p99Microseconds.map(number) ?? "-",
                row.usualMicroseconds.map(number).joined(separator: "–") + (row.isSlow ? "  SLOW" : "")
            )
        }
        return table.text
    }

    private static func number(_ value: Double) -> String {
        value >= 10 ? "\(Int(value.rounded()))" : "\((value * 10).rounded() / 10)"
    }
}
