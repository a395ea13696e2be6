// SPDX-License-Identifier: Apache-2.0

// Repeats one operation on a cache, for its system calls, allocations and instructions to be counted:
// SystemCallProbe DIRECTORY OPERATION TIMES [SIZE]
//
// What the start of the process and the first use cost is told apart by running it twice with different
// TIMES. The operations are in `Operation`; SIZE is how many bytes a value has (4096), for `trim` how many
// entries are left. Memory and janitor are off where an operation does not need them.

import DiskCache
import FoundationEssentials

let words = CommandLine.arguments
guard (4...5).contains(words.count), let operation = Operation(rawValue: words[2]), let times = Int(words[3]),
    let size = Int(words.count == 5 ? words[4] : "4096")
else {
    let operations = Operation.allCases.map(\.rawValue).joined(separator: "|")
    fatalError("usage: SystemCallProbe DIRECTORY \(operations) TIMES [SIZE]")
}
var configuration = CacheConfiguration()
if operation != .memoryHits, operation != .memoryOnly { configuration.memory = .none }
// Its thread's calls would be counted too.
configuration.janitor.isEnabled = false
if ProcessInfo.processInfo.environment["DISKCACHE_METADATA"] == "sidecar" {
    configuration.metadataForm = .sidecar
}
if ProcessInfo.processInfo.environment["DISKCACHE_DURABLE"] == "1" { configuration.durability = .fsync }
let cache = try SharedCache(at: words[1], configuration: configuration)
try Workload(cache: cache, size: size).run(operation, times: times)
