// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// Keeps a cache open until a signal ends the process, like a worker of a server: `shutdown DIRECTORY INTERVAL DEADLINE`.
///
/// INTERVAL and DEADLINE are in seconds. Prints "ready".
enum ShutdownProbe {
    static func run(_ words: [String]) throws {
        guard words.count == 3, let interval = Double(words[1]), let deadline = Double(words[2]) else {
            exit(EX_USAGE)
        }
        var configuration = CacheConfiguration()
        configuration.janitor.interval = .seconds(interval)
        try SharedCache.closeOnTermination(deadline: .seconds(deadline))
        let cache = try SharedCache(at: words[0], configuration: configuration)
        Probes.say("ready")
        withExtendedLifetime(cache) {
            while true { sleep(1000) }
        }
    }
}
