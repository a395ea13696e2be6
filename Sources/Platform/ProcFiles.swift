// SPDX-License-Identifier: Apache-2.0

/// What the kernel tells of the machine and its processes in `/proc`, proc(5).
package enum ProcFiles {
    /// Bytes of memory that can be had without swapping, and of swap that is free; nil where it is not told.
    ///
    /// C: `open`, `read`, `close`.
    package static func availableMemory() -> (memory: Int64, swap: Int64)? {
        text("/proc/meminfo").flatMap { availableMemory(parsing: $0) }
    }

    static func availableMemory(parsing text: String) -> (memory: Int64, swap: Int64)? {
        func bytes(_ name: String) -> Int64? {
            let line = text.split(separator: "\n").first { $0.hasPrefix(name + ":") }
            // "MemAvailable:    1234 kB"
            return line?.split(separator: " ").dropFirst().first.flatMap { Int64($0) }.map { $0 * 1024 }
        }
        return bytes("MemAvailable").map { ($0, bytes("SwapFree") ?? 0) }
    }

    /// Whether a process is stopped, by a signal or a debugger; nil where there is none of that number that we see.
    ///
    /// C: `open`, `read`, `close`.
    package static func isStopped(_ process: Int32) -> Bool? {
        text("/proc/\(process)/stat").flatMap { isStopped(parsing: $0) }
    }

    static func isStopped(parsing text: String) -> Bool? {
        // "12 (a name) with any) characters) T 1 …"
        guard let end = text.lastIndex(of: ")") else { return nil }
        return text[text.index(after: end)...].split(separator: " ").first.map { $0 == "T" || $0 == "t" }
    }

    /// Whether `process`, by the numbers that this process sees, holds a flock(2) on a file with this inode number.
    ///
    /// A number that somebody has left in a file may be of another namespace, where it is another process. False also
    /// where the kernel does not tell.
    ///
    /// C: `open`, `read`, `close`.
    package static func holdsLock(_ process: Int32, inode: UInt64) -> Bool {
        do throws(Errno) {
            let file = try FileDescriptor(opening: "/proc/locks", .readOnly)
            // A line has about 50 bytes.
            let text = String(decoding: try file.readToEnd(limit: 1 << 20) ?? [], as: UTF8.self)
            return holdsLock(process, inode: inode, parsing: text)
        } catch {
            return false
        }
    }

    static func holdsLock(_ process: Int32, inode: UInt64, parsing text: String) -> Bool {
        // "3: FLOCK  ADVISORY  WRITE 1234 fe:00:12345 0 EOF"; of who waits, "3: -> FLOCK …".
        text.split(separator: "\n").contains { line in
            let words = line.split(separator: " ")
            return words.count > 5 && words[1] == "FLOCK" && words[4] == "\(process)"
                && words[5].split(separator: ":").last.flatMap { UInt64($0) } == inode
        }
    }

    private static func text(_ path: String) -> String? {
        do throws(Errno) {
            // What is looked for is at the beginning of all of them.
            let bytes = try FileDescriptor(opening: path, .readOnly).read(4096)
            return String(decoding: bytes, as: UTF8.self)
        } catch {
            return nil
        }
    }
}
