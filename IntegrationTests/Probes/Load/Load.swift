// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import Synchronization
import TestSupport

/// What a process does.
package enum LoadRole: String, Sendable {
    case write, read, zipf, fill, uniform, mixed
}

/// The observations of one process.
package struct LoadReport: Codable, Sendable {
    package var operations = 0
    package var hits = 0
    /// The number of failed calls, and the error of the first one.
    package var failures = 0
    package var failure: String?
    /// The median and the 99th percentile of the times of gets, and the time of the longest put, in µs.
    package var median = 0.0
    package var p99 = 0.0
    package var longestPut = 0.0
    /// The mean time of a get in µs, for `uniform`.
    package var mean = 0.0
    /// The key and the time in ns of each request, in order, for `zipf`.
    package var requests: [Request] = []

    package struct Request: Codable, Sendable {
        package let time: UInt64
        package let key: Int
        package let isHit: Bool
    }
}

final class Stop: Sendable {
    private let flag = Atomic<Bool>(false)
    var isSet: Bool { flag.load(ordering: .relaxed) }
    func set() { flag.store(true, ordering: .relaxed) }
}

struct Load {
    let cache: SharedCache
    let number: UInt64
    let size: Int
    let keys: Int
    var report = LoadReport()

    private var generator: SeededGenerator

    init(cache: SharedCache, number: UInt64, size: Int, keys: Int) {
        self.cache = cache
        self.number = number
        self.size = size
        self.keys = keys
        generator = SeededGenerator(seed: number)
    }

    /// Returns bytes that differ from all other values.
    private mutating func value() -> Data {
        var data = Data(repeating: UInt8(truncatingIfNeeded: number), count: size)
        let words = [number, UInt64(report.operations), generator.next()]
        let count = min(size, 24)
        words.withUnsafeBytes { data.replaceSubrange(0..<count, with: $0.prefix(count)) }
        return data
    }

    private mutating func put(_ key: String) {
        let start = ContinuousClock.now
        do {
            try cache.put(value(), forKey: key)
        } catch {
            report.failures += 1
            if report.failure == nil { report.failure = "\(error)" }
        }
        report.longestPut = max(report.longestPut, (ContinuousClock.now - start) / .microseconds(1))
    }

    /// Returns whether a key has a value; a failed get counts like a failed put.
    private mutating func get(_ key: String) -> Bool {
        do {
            return try cache.get(forKey: key) != nil
        } catch {
            report.failures += 1
            if report.failure == nil { report.failure = "\(error)" }
            return false
        }
    }

    mutating func write(until stop: Stop) {
        while !stop.isSet {
            report.operations += 1
            put("write-\(number)-\(report.operations)")
        }
    }

    mutating func read(until stop: Stop) {
        var times: [Double] = []
        while !stop.isSet {
            report.operations += 1
            // So few keys that each is requested again long before the writers can fill the cache.
            let key = "read-\(number)-\(generator.next() % 8)"
            let start = ContinuousClock.now
            let isHit = get(key)
            let time = (ContinuousClock.now - start) / .microseconds(1)
            if !isHit {
                put(key)
            } else {
                report.hits += 1
                times.append(time)
            }
            usleep(400)
        }
        times.sort()
        if !times.isEmpty {
            report.median = times[times.count / 2]
            report.p99 = times[times.count * 99 / 100]
        }
    }

    mutating func request(until stop: Stop) {
        let popularity = Popularity(keys)
        while !stop.isSet {
            report.operations += 1
            let key = popularity.key(&generator)
            let isHit = get("key-\(key)")
            let now = monotonicNow()
            if !isHit { put("key-\(key)") } else { report.hits += 1 }
            report.requests.append(.init(time: now, key: key, isHit: isHit))
            if report.operations % 8 == 0 { usleep(200) }
        }
    }

    /// Stores values of up to about `size` bytes with tags under keys of 60 bytes, and replaces and removes some of them.
    mutating func mix(until stop: Stop) {
        while !stop.isSet {
            report.operations += 1
            let key = "\(number)-\(generator.next() % UInt64(keys))-".padding(
                toLength: 60,
                withPad: "x",
                startingAt: 0
            )
            do {
                if generator.next() % 50 == 0 {
                    try cache.remove(forKey: key)
                } else {
                    let bytes = SeededGenerator.bytes(
                        100 + Int(generator.next() % UInt64(size)),
                        seed: generator.next()
                    )
                    let options = PutOptions(tags: ["tag-\(generator.next() % 100)", "number-\(number)"])
                    try cache.put(Data(bytes), forKey: key, options: options)
                }
            } catch {
                report.failures += 1
                if report.failure == nil { report.failure = "\(error)" }
            }
        }
    }

    /// Stores each key once.
    mutating func fill() {
        for key in 0..<keys {
            report.operations += 1
            put("key-\(key)")
        }
    }

    /// Requests equally popular keys `skipped` times without measuring, and then `count` times with measuring.
    mutating func requestUniformly(_ count: Int, after skipped: Int) {
        // Created in advance, so that only the gets are measured.
        let names = (0..<keys).map { "key-\($0)" }
        var start = ContinuousClock.now
        for request in 0..<skipped + count {
            if request == skipped { start = .now }
            if get(names[Int(truncatingIfNeeded: generator.next() >> 1) % keys]) { report.hits += 1 }
        }
        report.operations = skipped + count
        report.mean = (ContinuousClock.now - start) / .microseconds(1) / Double(max(1, count))
    }

    private func monotonicNow() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

/// Zipf's law with exponent 0.9: the probability of key k is proportional to k^-0.9.
struct Popularity {
    private var sums: [Double] = []

    init(_ keys: Int) {
        var sum = 0.0
        for key in 1...max(1, keys) {
            sum += pow(Double(key), -0.9)
            sums.append(sum)
        }
    }

    func key(_ generator: inout SeededGenerator) -> Int {
        let target = Double(generator.next() >> 11) / Double(1 << 53) * sums[sums.count - 1]
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] < target { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
