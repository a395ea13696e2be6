// SPDX-License-Identifier: Apache-2.0

// One process of a load on a cache with limits, until its standard input ends; then it prints its observations as one line
// of JSON.
// LoadProbe write|read|zipf|mixed DIRECTORY NUMBER BYTES [KEYS [HELD]]
// or until it is done: LoadProbe fill|uniform DIRECTORY NUMBER BYTES KEYS [HELD [SKIPPED [COUNT]]]
//
// write: puts values, all of them different and under new keys, as fast as it can.
// read:  gets 8 keys from disk, and stores missing ones again, at most 2,500 times a second.
// zipf:  requests KEYS keys, popular and rare ones, through HELD values in memory and the disk, and stores missing
//        ones.
// mixed: stores, replaces and removes KEYS keys of 60 bytes with tags, whose values have up to about BYTES.
// fill:  stores KEYS keys.
// uniform: requests COUNT (100,000) times one of KEYS keys that were filled in, all equally popular, with memory for
//        HELD values (-1: the default), and reports the mean time of a get after the first SKIPPED ones.

import DiskCache
import Foundation
import TestSupport

let words = CommandLine.arguments
guard words.count >= 5, let role = LoadRole(rawValue: words[1]), let number = UInt64(words[3]),
    let size = Int(words[4])
else {
    fatalError("usage: LoadProbe write|read|zipf|mixed|fill|uniform DIRECTORY NUMBER BYTES [KEYS …]")
}
var configuration = CacheConfiguration()
if role == .read { configuration.memory = .none }
if role == .fill { configuration.memory = .none }
if words.count > 6, let held = Int(words[6]), held >= 0 { configuration.memory.countLimit = held }
let cache = try SharedCache(at: words[2], configuration: configuration)
let stop = Stop()
let reader = Thread { @Sendable in
    _ = try? FileHandle.standardInput.readToEnd()
    stop.set()
}
reader.start()
var load = Load(cache: cache, number: number, size: size, keys: words.count > 5 ? Int(words[5]) ?? 1 : 1)
switch role {
case .write: load.write(until: stop)
case .read: load.read(until: stop)
case .zipf: load.request(until: stop)
case .mixed: load.mix(until: stop)
case .fill: load.fill()
case .uniform:
    load.requestUniformly(
        words.count > 8 ? Int(words[8]) ?? 0 : 100_000,
        after: words.count > 7 ? Int(words[7]) ?? 0 : 0
    )
}
cache.close()
FileHandle.standardOutput.write(try JSONEncoder().encode(load.report))
