// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation
import TestSupport

/// One process of a load test on a cache with limits.
///
/// `load write|read|zipf|mixed DIRECTORY NUMBER BYTES [KEYS [HELD]]` runs until its standard input ends, `load
/// fill|uniform DIRECTORY NUMBER BYTES KEYS [HELD [SKIPPED [COUNT]]]` until its work is done. Both then print their
/// observations as one line of JSON.
///
/// - write: puts different values under new keys, as fast as possible.
/// - read: gets 8 keys from disk, and stores missing ones again, at most 2,500 times a second.
/// - zipf: requests KEYS keys, popular and rare ones, with HELD values in memory, and stores missing ones.
/// - mixed: stores, replaces and removes KEYS keys of 60 bytes with tags and values of up to about BYTES.
/// - fill: stores KEYS keys.
/// - uniform: requests COUNT (100,000) times one of the KEYS keys that `fill` has stored, all equally popular, with
///   memory for HELD values (-1: the default), and reports the mean time of a get after the first SKIPPED ones.
enum LoadProbe {
    static func run(_ words: [String]) throws {
        guard words.count >= 4, let role = LoadRole(rawValue: words[0]), let number = UInt64(words[2]),
            let size = Int(words[3])
        else { exit(EX_USAGE) }
        var configuration = CacheConfiguration()
        if role == .read { configuration.memory = .none }
        if role == .fill { configuration.memory = .none }
        if words.count > 5, let held = Int(words[5]), held >= 0 { configuration.memory.countLimit = held }
        let cache = try SharedCache(at: words[1], configuration: configuration)
        let stop = Stop()
        let reader = Thread { @Sendable in
            _ = try? FileHandle.standardInput.readToEnd()
            stop.set()
        }
        reader.start()
        let keys = words.count > 4 ? Int(words[4]) ?? 1 : 1
        var load = Load(cache: cache, number: number, size: size, keys: keys)
        switch role {
        case .write: load.write(until: stop)
        case .read: load.read(until: stop)
        case .zipf: load.request(until: stop)
        case .mixed: load.mix(until: stop)
        case .fill: load.fill()
        case .uniform:
            load.requestUniformly(
                words.count > 7 ? Int(words[7]) ?? 0 : 100_000,
                after: words.count > 6 ? Int(words[6]) ?? 0 : 0
            )
        }
        cache.close()
        FileHandle.standardOutput.write(try JSONEncoder().encode(load.report))
    }
}
