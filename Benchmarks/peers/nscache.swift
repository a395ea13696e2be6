// SPDX-License-Identifier: Apache-2.0
//
// What a Swift program has for values in memory: NSCache, with keys that are NSString already and with String keys
// bridged on each get, and a Dictionary behind a Mutex, one and 16. Hits in random order; the clock is read once in
// 64 hits.

import Foundation
import Synchronization

let count = 100_000
let batch = 64
let valueSize = 64

func option(_ name: String, _ fallback: Double) -> Double {
    guard let position = CommandLine.arguments.firstIndex(of: name) else { return fallback }
    return Double(CommandLine.arguments[position + 1]) ?? fallback
}

let seed = UInt64(option("--seed", 1))
let seconds = option("--secs", 0.5)

@inline(__always)
func now() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }
}

struct Reading {
    var times: [UInt64] = []
    var hits = 0
    var bytes = 0
    var begin: UInt64 = 0
    var end: UInt64 = 0
}

/// Reads in an order of its own until the time is over.
func read(thread: Int, from begin: UInt64, _ length: (Int) -> Int) -> Reading {
    var random = SplitMix(state: UInt64(thread) &* 7 &+ seed)
    let order = Array(0..<count).shuffled(using: &random)
    var reading = Reading()
    reading.times.reserveCapacity(1 << 18)
    while now() < begin {}
    reading.begin = now()
    reading.end = reading.begin
    var position = 0
    while reading.end < reading.begin + UInt64(seconds * 1e9) {
        for _ in 0..<batch {
            reading.bytes += length(order[position])
            position = position + 1 == count ? 0 : position + 1
        }
        let time = now()
        reading.hits += batch
        reading.times.append((time - reading.end) / UInt64(batch))
        reading.end = time
    }
    return reading
}

func measure(_ system: String, _ variant: String, threads: Int, _ length: @escaping @Sendable (Int) -> Int) {
    let readings = Mutex<[Reading]>([])
    let begin = now() + 20_000_000
    let ended = DispatchSemaphore(value: 0)
    for thread in 0..<threads {
        Thread {
            let reading = read(thread: thread, from: begin, length)
            readings.withLock { $0.append(reading) }
            ended.signal()
        }.start()
    }
    for _ in 0..<threads { ended.wait() }
    let all = readings.withLock { $0 }
    let times = all.flatMap(\.times).sorted()
    let hits = all.reduce(0) { $0 + $1.hits }
    let errors = all.reduce(0) { $0 + $1.bytes } == hits * valueSize ? 0 : 1
    let end = all.map(\.end).max() ?? 0
    let elapsed = Double(end - all.reduce(end) { min($0, $1.begin) })
    print(
        """
        {"system":"\(system)","workload":"W10","op":"mem_hit","variant":"\(variant)","size":\(valueSize),"procs":1,\
        "threads":\(threads),"ops":\(hits),"errs":\(errors),"p50_ns":\(times[times.count / 2]),\
        "p99_ns":\(times[times.count * 99 / 100]),"mean_ns":\(elapsed * Double(threads) / Double(hits)),\
        "ops_per_s":\(Double(hits) / elapsed * 1e9)}
        """
    )
}

final class LockedDictionary: Sendable {
    private let values = Mutex<[String: Data]>([:])

    subscript(key: String) -> Data? {
        get { values.withLock { $0[key] } }
        set { values.withLock { $0[key] = newValue } }
    }
}

let keys = (0..<count).map { String(format: "user:%08d/thumb", $0) }
nonisolated(unsafe) let bridgedKeys = keys.map { $0 as NSString }
nonisolated(unsafe) let cache = NSCache<NSString, NSData>()
let whole = LockedDictionary()
let shards = (0..<16).map { _ in LockedDictionary() }
for index in 0..<count {
    let value = Data(repeating: UInt8(truncatingIfNeeded: index), count: valueSize)
    cache.setObject(value as NSData, forKey: bridgedKeys[index])
    whole[keys[index]] = value
    shards[keys[index].hashValue & 15][keys[index]] = value
}
for threads in 1...2 {
    measure("nscache", "", threads: threads) { cache.object(forKey: bridgedKeys[$0])?.count ?? 0 }
    measure("nscache", "bridged", threads: threads) { cache.object(forKey: keys[$0] as NSString)?.count ?? 0 }
    measure("swift-dictionary", "mutex", threads: threads) { whole[keys[$0]]?.count ?? 0 }
    measure("swift-dictionary", "mutex16", threads: threads) {
        shards[keys[$0].hashValue & 15][keys[$0]]?.count ?? 0
    }
}
