// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// Repeats one operation on a cache, so that its system calls, allocations and instructions can be counted.
///
/// The arguments are `systemCalls DIRECTORY OPERATION TIMES [SIZE]`. Two runs with different TIMES separate the cost of
/// an operation from the costs of starting and of the first use. For the operations see ``Operation``. SIZE is the length
/// of a value in bytes (4096), or for `trim` the number of entries to keep. The memory tier is off for operations that do
/// not need it, and the janitor is always off.
enum SystemCallProbe {
    static func run(_ words: [String]) throws {
        guard (3...4).contains(words.count), let operation = Operation(rawValue: words[1]),
            let times = Int(words[2]), let size = Int(words.count == 4 ? words[3] : "4096")
        else {
            let operations = Operation.allCases.map(\.rawValue).joined(separator: "|")
            fatalError("usage: Probes systemCalls DIRECTORY \(operations) TIMES [SIZE]")
        }
        var configuration = CacheConfiguration()
        if operation != .memoryHits, operation != .memoryOnly { configuration.memory = .none }
        // The system calls of the janitor's thread would be counted, too.
        configuration.janitor.isEnabled = false
        if ProcessInfo.processInfo.environment["DISKCACHE_METADATA"] == "sidecar" {
            configuration.metadataForm = .sidecar
        }
        if ProcessInfo.processInfo.environment["DISKCACHE_DURABLE"] == "1" {
            configuration.durability = .fsync
        }
        let cache = try SharedCache(at: words[0], configuration: configuration)
        try Workload(cache: cache, size: size).run(operation, times: times)
    }
}
