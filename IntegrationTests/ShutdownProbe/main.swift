// SPDX-License-Identifier: Apache-2.0

// Keeps a cache open until a signal ends the process, as a worker of a server does:
// ShutdownProbe DIRECTORY INTERVAL DEADLINE   (seconds; prints "ready")

import DiskCache
import Foundation

let words = CommandLine.arguments
guard words.count == 4, let interval = Double(words[2]), let deadline = Double(words[3]) else {
    fatalError("usage: ShutdownProbe DIRECTORY INTERVAL DEADLINE")
}
var configuration = CacheConfiguration()
configuration.janitor.interval = .seconds(interval)
try SharedCache.closeOnTermination(deadline: .seconds(deadline))
let cache = try SharedCache(at: words[1], configuration: configuration)
FileHandle.standardOutput.write(Data("ready\n".utf8))
withExtendedLifetime(cache) {
    while true { sleep(1000) }
}
