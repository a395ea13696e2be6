// SPDX-License-Identifier: Apache-2.0

// Repeats one operation on a cache, for a tracer to count its system calls:
// SystemCallProbe DIRECTORY get|memory-hits|miss|removed|overwrite|touch|contains|entry|remove|new TIMES

import DiskCache
import FoundationEssentials

let words = CommandLine.arguments
guard words.count == 4, let times = Int(words[3]) else {
    fatalError("usage: SystemCallProbe DIRECTORY OPERATION TIMES")
}
var configuration = CacheConfiguration()
if words[2] != "memory-hits" { configuration.memory = .none }
// Its thread's calls would be counted too.
configuration.janitor.isEnabled = false
if ProcessInfo.processInfo.environment["DISKCACHE_METADATA"] == "sidecar" {
    configuration.metadataForm = .sidecar
}
if ProcessInfo.processInfo.environment["DISKCACHE_DURABLE"] == "1" { configuration.durability = .fsync }
let cache = try SharedCache(at: words[1], configuration: configuration)
let value = Data(repeating: 7, count: 4096)
// What happens once a process (opening locks, looking at the access time) comes before the count.
try cache.put(value, forKey: "key")
guard try cache.get("key")?.data == value, try cache.get("absent") == nil else {
    fatalError("the cache does not work")
}
try cache.put(value, forKey: "removed")
guard try cache.remove("removed") else { fatalError("the cache does not work") }
for round in 0..<times {
    switch words[2] {
    case "get": _ = try cache.get("key")
    case "memory-hits":
        guard try cache.get("key")?.tier.rawValue == "memory" else { fatalError("a hit from the disk") }
    case "miss": _ = try cache.get("absent")
    case "removed": _ = try cache.get("removed")
    case "overwrite": try cache.put(value, forKey: "key")
    case "touch": _ = try cache.touch("key")
    case "contains": _ = try cache.contains("key")
    case "entry": _ = try cache.entry(forKey: "key")
    case "remove": _ = try cache.remove("absent")
    case "new": try cache.put(Data("value \(round)".utf8), forKey: "new \(round)")
    default: fatalError("no operation \(words[2])")
    }
}
