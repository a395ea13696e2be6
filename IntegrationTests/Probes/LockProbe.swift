// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// One of several processes that share a lock: `lock CACHE NAME PERMITS PLACE`.
///
/// It takes the lock again and again, until the file PLACE/stop exists. While it holds the lock it has a file in
/// PLACE/inside, and checks which other processes have one: a line in PLACE/faults reports that there were more than PERMITS
/// at once. PLACE/turns gets a byte for each time. If PLACE is -, it takes the lock once, prints "held", and holds the lock
/// until it is killed.
struct LockProbe {
    private let path: String
    private let name: String
    private let permits: Int
    private let place: String

    init(_ words: [String]) {
        guard words.count == 4, let permits = Int(words[2]) else { exit(EX_USAGE) }
        (path, name, self.permits, place) = (words[0], words[1], permits, words[3])
    }

    func run() throws {
        let cache = try SharedCache(at: path)
        if place == "-" {
            let lock = try cache.lock(name, permits: permits)
            Probes.say("held")
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
    }

    private func append(_ text: String, to file: String) {
        let descriptor = open("\(place)/\(file)", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        _ = text.withCString { write(descriptor, $0, strlen($0)) }
        close(descriptor)
    }

    /// Returns the fields of proc_pid_stat(5) from the state on, or nil if there is no such process.
    private func status(_ process: String) -> [Substring]? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else {
            return nil
        }
        // The name before them may contain anything.
        let words = text.split(separator: ")").last?.split(separator: " ") ?? []
        return words.count > 19 ? words : nil
    }

    /// Returns the start time of a process, which together with its number identifies it.
    private func beginning(_ process: String) -> String { status(process).map { String($0[19]) } ?? "" }

    /// Returns whether the process that created a marker, PROCESS-BEGINNING-NUMBER, has ended or is certain to end.
    ///
    /// Only then does the kernel close its files.
    private func isDead(_ marker: String) -> Bool {
        let parts = marker.split(separator: "-").map(String.init)
        guard let words = status(parts[0]), words[19] == parts[1], let flags = UInt32(words[6]) else {
            return true
        }
        let isExiting = flags & 0x4 != 0  // PF_EXITING, linux/sched.h
        return isExiting || words[0] == "Z" || words[0] == "X"
    }

    /// Returns how many other processes were inside together with this one, without killed ones.
    private func othersInside(_ own: String) -> Int {
        let inside = place + "/inside/"
        let listed = (try? FileManager.default.contentsOfDirectory(atPath: inside)) ?? []
        // Each marker is unique: those that still exist all existed when the list was complete.
        let together = listed.filter { $0 != own && access(inside + $0, F_OK) == 0 }
        return together.count { !isDead($0) }
    }
}
