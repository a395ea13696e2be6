// SPDX-License-Identifier: Apache-2.0

import DiskCacheRemote
import Foundation

/// A process on one of several machines that share values.
///
/// `remote CACHE URL put COUNT` stores COUNT values, prints "done", and then waits until it is killed. `remote CACHE URL
/// get KEY GO` prints "ready", waits until the file GO exists, and prints the value of the key, or "none".
enum RemoteProbe {
    static func run(_ words: [String]) throws {
        guard words.count >= 4 else { exit(EX_USAGE) }
        var remote = CacheConfiguration.Remote(servers: [words[1]])
        // The tests must succeed on a machine of any speed.
        remote.limit = .seconds(30)
        let cache = try SharedCache(at: words[0], remote: remote)
        switch words[2] {
        case "put":
            guard let count = Int(words[3]) else { exit(EX_USAGE) }
            for number in 0..<count { try cache.put(Data("value \(number)".utf8), forKey: "key \(number)") }
            Probes.say("done")
            while true { pause() }
        default:
            guard words.count == 5 else { exit(EX_USAGE) }
            Probes.say("ready")
            while access(words[4], F_OK) != 0 { usleep(1000) }
            let hit = try cache.get(forKey: words[3])
            Probes.say(hit.map { String(decoding: $0.value, as: UTF8.self) } ?? "none")
        }
    }
}
