// SPDX-License-Identifier: Apache-2.0

import DiskCacheRemote
import Foundation

// One process of a machine that shares values: `RemoteProbe CACHE URL put COUNT` stores COUNT values, prints "done" and
// stays until it is killed; `RemoteProbe CACHE URL get KEY GO` prints "ready", waits until the file GO exists, and prints
// the value of the key, or "none".

let arguments = CommandLine.arguments
guard arguments.count >= 5 else { exit(EX_USAGE) }

/// Prints a line at once: `print` buffers when standard output is a pipe.
func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

do {
    var remote = CacheConfiguration.Remote(servers: [arguments[2]])
    // The tests check results on a machine of any speed.
    remote.limit = .seconds(30)
    let cache = try SharedCache(at: arguments[1], remote: remote)
    switch arguments[3] {
    case "put":
        guard let count = Int(arguments[4]) else { exit(EX_USAGE) }
        for number in 0..<count { try cache.put(Data("value \(number)".utf8), forKey: "key \(number)") }
        say("done")
        while true { pause() }
    default:
        guard arguments.count == 6 else { exit(EX_USAGE) }
        say("ready")
        while access(arguments[5], F_OK) != 0 { usleep(1000) }
        let hit = try cache.get(forKey: arguments[4])
        say(hit.map { String(decoding: $0.value, as: UTF8.self) } ?? "none")
    }
} catch {
    say("\(error)")
    exit(EXIT_FAILURE)
}
