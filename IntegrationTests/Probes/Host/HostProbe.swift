// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// Tests how a cache affects its host program: `host TASK DIRECTORY` prints its observations as a line of JSON.
///
/// - blocked: 64 tasks put while all stripes are locked as if by another process; others get in the meantime.
/// - durable: 256 tasks put with fsync.
/// - fork-…: forks while a cache is open; see ForkingHost. prefork: forks before it opens a cache.
/// - crash: a closure crashes on a library thread; the program's signal handler exits with status 7.
/// - chdir: opens a cache at a relative path, and changes the working directory; `reads` counts the successful checks.
/// - descriptors: 64 tasks put from a pipe, others put in the background, and the process has no free descriptor.
enum HostProbe {
    static func run(_ words: [String]) throws {
        guard words.count == 2 else { exit(EX_USAGE) }
        let path = words[1]
        switch words[0] {
        case "fork-use": try ForkingHost(path).useInChild()
        case "fork-wait": try ForkingHost(path).waitInChild()
        case "fork-compute": try ForkingHost(path).computeInChild()
        case "fork-ask": try ForkingHost(path).askInChild()
        case "fork-locks": try ForkingHost(path).giveBackInChild()
        case "fork-named": try ForkingHost(path).lockInChild()
        case "fork-contend": try ForkingHost(path).contendInChild()
        case "prefork": try ForkingHost(path).prefork()
        case "blocked": Probes.inTask { try report(try await BlockedHost(path).run()) }
        case "crash": Probes.inTask { try report(try await CrashingHost(path).run()) }
        case "descriptors": Probes.inTask { try report(try await ExhaustedHost(path).run()) }
        case "durable": Probes.inTask { try report(try await DurableHost(path).run()) }
        case "chdir": return try report(try MovingHost(path).run())
        default: exit(EX_USAGE)
        }
        try report(HostReport())
    }

    private static func report(_ report: HostReport) throws {
        FileHandle.standardOutput.write(try JSONEncoder().encode(report))
    }
}
