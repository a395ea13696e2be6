// SPDX-License-Identifier: Apache-2.0

// One process of a load on a cache with limits, until its standard input ends; then it prints what it saw as one
// line of JSON. LoadProbe write|read|zipf|mixed DIRECTORY NUMBER BYTES [KEYS [HELD]]
// or until it is done: LoadProbe fill|uniform DIRECTORY NUMBER BYTES KEYS [HELD [SKIPPED [COUNT]]]
//
// write: puts values, all of them different and under new keys, as fast as it can.
// read:  gets 64 keys from disk, storing again what is gone, 2,000 times a second at most.
// zipf:  asks for KEYS keys, popular and rare ones, through HELD values in memory and the disk, and stores what is
//        missing.
// mixed: stores, replaces and removes KEYS keys of 60 bytes with tags, whose values have up to BYTES.
// fill:  stores KEYS keys.
// uniform: asks for COUNT (100,000) of KEYS keys that were filled in, all equally popular, with memory for HELD values
//        (-1: as many as by default), and says how long a get takes on the average once SKIPPED were made.

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
