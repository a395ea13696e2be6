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

/// State and beginning of a process, which together with its number tell it from any other; nil: there is none.
func fate(_ process: String) -> (state: String, began: String)? {
    guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
        // What stands before may contain anything.
        let rest = text.split(separator: ")").last?.split(separator: " "), rest.count > 19
    else { return nil }
    return (String(rest[0]), String(rest[19]))
}

/// Whether the process that has made a marker, PROCESS-BEGINNING-NUMBER, has ended.
func isDead(_ marker: String) -> Bool {
    let parts = marker.split(separator: "-").map(String.init)
    guard let fate = fate(parts[0]), fate.began == parts[1] else { return true }
    return fate.state == "Z" || fate.state == "X"
}

/// How many of those who were inside together with this process have left by themselves: no kill has made them leave.
func othersInside(_ own: String) -> Int {
    let inside = place + "/inside/"
    let listed = (try? FileManager.default.contentsOfDirectory(atPath: inside)) ?? []
    // No marker comes twice: those that are still there were all there when the list was complete.
    let together = listed.filter { $0 != own && access(inside + $0, F_OK) == 0 }
    guard together.count >= permits else { return 0 }
    return together.count { marker in
        while true {
            if isDead(marker) { return false }
            if access(inside + marker, F_OK) != 0 { return true }
            usleep(200)
        }
    }
}

do {
    let cache = try SharedCache(at: words[1])
    if place == "-" {
        let lock = try cache.lock(name, permits: permits)
        FileHandle.standardOutput.write(Data("held\n".utf8))
        while true { sleep(3600) }
        lock.unlock()
    }
    let process = "\(getpid())-\(fate("self")?.began ?? "")"
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
