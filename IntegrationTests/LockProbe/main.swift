// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

// One of several processes that share a lock: `LockProbe CACHE NAME PERMITS PLACE`.
//
// Takes it again and again, until the file PLACE/stop is there. While it holds it there is a file in PLACE/inside, and it
// looks who else has one there: a line in PLACE/faults says that there were more than PERMITS at once. PLACE/turns gets a
// byte for each time. If PLACE is -, takes the lock once, says so, and holds it until it is killed.

let words = CommandLine.arguments
guard words.count == 5, let permits = Int(words[3]) else { exit(EX_USAGE) }
let (name, place) = (words[2], words[4])

func append(_ text: String, to file: String) {
    let descriptor = open("\(place)/\(file)", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    _ = text.withCString { write(descriptor, $0, strlen($0)) }
    close(descriptor)
}

/// What proc_pid_stat(5) tells of a process from its state on; nil: there is none.
func status(_ process: String) -> [Substring]? {
    guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return nil }
    // What stands before, the name, may contain anything.
    let words = text.split(separator: ")").last?.split(separator: " ") ?? []
    return words.count > 19 ? words : nil
}

/// When a process has begun: with its number this tells it from any other.
func beginning(_ process: String) -> String { status(process).map { String($0[19]) } ?? "" }

/// Whether the process that has made a marker, PROCESS-BEGINNING-NUMBER, has ended or is about to, beyond return: only
/// then does the kernel close its files.
func isDead(_ marker: String) -> Bool {
    let parts = marker.split(separator: "-").map(String.init)
    guard let words = status(parts[0]), words[19] == parts[1], let flags = UInt32(words[6]) else {
        return true
    }
    let isExiting = flags & 0x4 != 0  // PF_EXITING, linux/sched.h
    return isExiting || words[0] == "Z" || words[0] == "X"
}

/// How many others were inside together with this process, but those that were killed.
func othersInside(_ own: String) -> Int {
    let inside = place + "/inside/"
    let listed = (try? FileManager.default.contentsOfDirectory(atPath: inside)) ?? []
    // No marker comes twice: those that are still there were all there when the list was complete.
    let together = listed.filter { $0 != own && access(inside + $0, F_OK) == 0 }
    return together.count { !isDead($0) }
}

do {
    let cache = try SharedCache(at: words[1])
    if place == "-" {
        let lock = try cache.lock(name, permits: permits)
        FileHandle.standardOutput.write(Data("held\n".utf8))
        withExtendedLifetime(lock) {
            while true { sleep(3600) }
        }
    }
    let process = "\(getpid())-\(beginning("self"))"
    var turn = 0
    while access(place + "/stop", F_OK) != 0 {
        let lock = try cache.lock(name, permits: permits)
        turn += 1
        let marker = "\(process)-\(turn)"
        close(open("\(place)/inside/\(marker)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600))
        if othersInside(marker) >= permits { append("\(marker)\n", to: "faults") }
        usleep(.random(in: 100...3000))
        unlink("\(place)/inside/\(marker)")
        append("x", to: "turns")
        lock.unlock()
    }
} catch {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(EXIT_FAILURE)
}
