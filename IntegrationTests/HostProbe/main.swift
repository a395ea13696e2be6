// SPDX-License-Identifier: Apache-2.0

// Tests the effect of a cache on its program: HostProbe TASK DIRECTORY prints its observations as a line of JSON.
//
// blocked:     64 tasks put while all stripes are locked as by another process; others get meanwhile.
// durable:     256 tasks put with fsync.
// fork-…:      forks with an open cache, see ForkingHost. prefork: forks first.
// crash:       a closure crashes on a library thread; a handler of the program ends it with 7.
// chdir:       opens a cache at a relative path and changes its working directory; `reads` counts the successful checks.
// descriptors: 64 tasks put from a pipe, others put in the background, and the process has no free descriptor.

import DiskCache
import Foundation

let words = CommandLine.arguments
guard words.count == 3 else { fatalError("usage: HostProbe TASK DIRECTORY") }
var report = HostReport()
switch words[1] {
case "fork-use": try ForkingHost(words[2]).useInChild()
case "fork-wait": try ForkingHost(words[2]).waitInChild()
case "fork-compute": try ForkingHost(words[2]).computeInChild()
case "fork-ask": try ForkingHost(words[2]).askInChild()
case "fork-locks": try ForkingHost(words[2]).giveBackInChild()
case "fork-named": try ForkingHost(words[2]).lockInChild()
case "fork-contend": try ForkingHost(words[2]).contendInChild()
case "prefork": try ForkingHost(words[2]).prefork()
case "blocked": report = try await BlockedHost(words[2]).run()
case "crash": report = try await CrashingHost(words[2]).run()
case "descriptors": report = try await ExhaustedHost(words[2]).run()
case "chdir": report = try MovingHost(words[2]).run()
case "durable": report = try await DurableHost(words[2]).run()
default: fatalError("no such task: \(words[1])")
}
FileHandle.standardOutput.write(try JSONEncoder().encode(report))
