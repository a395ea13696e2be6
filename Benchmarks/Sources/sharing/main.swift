// SPDX-License-Identifier: Apache-2.0

import DiskCacheRemote
import Foundation

// What the tier behind the disk costs its client; the script `remote` runs it.
//
//   sharing fill URL DIR COUNT BYTES       puts so many values, and waits until the server has them
//   sharing get URL DIR COUNT BYTES        gets each once: the first time from the server, later from disk
//   sharing get none DIR COUNT BYTES       the same without a server
//   sharing pass URL DIR COUNT BYTES       gets each once from the server, and puts nothing on disk
//
// `get` and `pass` print the processor time and the time on the clock, in nanoseconds a get.

let arguments = CommandLine.arguments
guard arguments.count == 6, let count = Int(arguments[4]), let bytes = Int(arguments[5]) else {
    FileHandle.standardError.write(Data("use: sharing fill|get|pass URL|none DIR COUNT BYTES\n".utf8))
    exit(EX_USAGE)
}

/// Nanoseconds of processor time of all threads so far.
func processorTime() -> Double {
    var usage = rusage()
    unsafe getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    let (user, system) = (usage.ru_utime, usage.ru_stime)
    return Double(user.tv_sec + system.tv_sec) * 1e9 + Double(user.tv_usec + system.tv_usec) * 1e3
}

/// The same bytes in each run, which no compression makes shorter.
func value(_ number: Int) -> Data {
    var state = UInt64(number) &* 0x9E37_79B9_7F4A_7C15 | 1
    return Data(
        (0..<bytes).map { _ in
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return UInt8(truncatingIfNeeded: state)
        }
    )
}

var configuration = CacheConfiguration()
// Each get is one from disk or from the server.
configuration.memory = .none
var remote: CacheConfiguration.Remote? = nil
if arguments[2] != "none" {
    remote = CacheConfiguration.Remote(servers: [arguments[2]])
    remote?.limit = .seconds(10)
}

do {
    let cache = try SharedCache(at: arguments[3], configuration: configuration, remote: remote)
    if arguments[1] == "fill" {
        for number in 0..<count { try cache.put(value(number), forKey: "key \(number)") }
        // Closing waits for two seconds at most.
        while let waiting = cache.directory.remote?.waiting, waiting > 0 { usleep(10_000) }
        cache.close()
        exit(EXIT_SUCCESS)
    }
    if arguments[1] == "pass" { try cache.directory.updateLimits { $0.maximumValueSize = .bytes(1) } }
    let expected = value(count - 1)
    // The library is loaded, and the connection made, before time is taken: as in the loops beside it.
    _ = try cache.get(forKey: "absent")
    let (begin, clock) = (processorTime(), ContinuousClock.now)
    var last: Data?
    for number in 0..<count {
        last = try cache.get(forKey: "key \(number)")?.value
        guard last?.count == bytes else {
            FileHandle.standardError.write(Data("key \(number) is not there\n".utf8))
            exit(EXIT_FAILURE)
        }
    }
    let (end, span) = (processorTime(), ContinuousClock.now - clock)
    guard last == expected else {
        FileHandle.standardError.write(Data("wrong bytes\n".utf8))
        exit(EXIT_FAILURE)
    }
    print((end - begin) / Double(count), span / .nanoseconds(1) / Double(count))
} catch {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(EXIT_FAILURE)
}
