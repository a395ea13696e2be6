// SPDX-License-Identifier: Apache-2.0

import DiskCache
import Foundation

/// Shares a lock with other processes: `lock CACHE NAME PERMITS PLACE`.
///
/// Takes the lock again and again, until the file PLACE/stop exists. While it holds the lock, it has a marker file in
/// PLACE/inside, and checks which other processes have one; a line in PLACE/faults reports that more than PERMITS
/// processes held the lock at once. PLACE/turns gets a byte for each turn. If PLACE is -, it takes the lock once, prints
/// "held", and holds the lock until it is killed.
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

    /// Returns the fields of proc_pid_stat(5), beginning with the state; nil if the process does not exist.
    private func status(_ process: String) -> [Substring]? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else {
            return nil
        }
        // The program's name before these fields may contain spaces and parentheses.
        let words = text.split(separator: ")").last?.split(separator: " ") ?? []
        return words.count > 19 ? words : nil
    }

    /// Returns the start time of a process, which identifies it together with its ID.
    private func beginning(_ process: String) -> String { status(process).map { String($0[19]) } ?? "" }

    /// Returns whether the process that created the marker PROCESS-BEGINNING-NUMBER has ended or is certain to end.
    ///
    /// The kernel closes the files of a process only then.
    private func isDead(_ marker: String) -> Bool {
        let parts = marker.split(separator: "-").map(String.init)
        guard let words = status(parts[0]), words[19] == parts[1], let flags = UInt32(words[6]) else {
            return true
        }
        let isExiting = flags & 0x4 != 0  // PF_EXITING, linux/sched.h
        return isExiting || words[0] == "Z" || words[0] == "X"
    }

    /// Returns how many other live processes held the lock together with this one.
    private func othersInside(_ own: String) -> Int {
        let inside = place + "/inside/"
        let listed = (try? FileManager.default.contentsOfDirectory(atPath: inside)) ?? []
        // Markers are never reused: those that still exist all existed at the moment when the list was complete.
        let together = listed.filter { $0 != own && access(inside + $0, F_OK) == 0 }
        return together.count { !isDead($0) }
    }
}
