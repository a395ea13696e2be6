// SPDX-License-Identifier: Apache-2.0

/// Facts about the machine and its processes from `/proc`, proc(5).
package enum ProcFiles {
    /// Returns the bytes of memory available without swapping and the bytes of free swap; nil if the kernel does not report
    /// them.
    ///
    /// C: `open`, `pread`, `close`.
    package static func availableMemory() -> (memory: Int64, swap: Int64)? {
        text("/proc/meminfo").flatMap { availableMemory(parsing: $0) }
    }

    static func availableMemory(parsing text: String) -> (memory: Int64, swap: Int64)? {
        // "MemAvailable:    1234 kB"
        guard let memory = number(after: "MemAvailable:", in: text) else { return nil }
        return (memory * 1024, (number(after: "SwapFree:", in: text) ?? 0) * 1024)
    }

    /// Returns the machine's total bytes of memory, from `/proc/meminfo`.
    static func totalMemory(parsing text: String) -> Int64? {
        number(after: "MemTotal:", in: text).map { $0 * 1024 }
    }

    /// Returns the number in the line that begins with `name` and a space.
    static func number(after name: String, in text: String) -> Int64? {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            if words.count > 1, words[0] == name { return Int64(words[1]) }
        }
        return nil
    }

    /// Whether a process is stopped, by a signal or a debugger; nil if this process sees no process of that number.
    ///
    /// C: `open`, `pread`, `close`.
    package static func isStopped(_ process: Int32) -> Bool? {
        text("/proc/\(process)/stat").flatMap { state(parsing: $0) }.map { $0 == "T" || $0 == "t" }
    }

    /// Whether any thread of a process, except the calling thread, runs or waits only for a processor or a disk.
    ///
    /// False for a process that is stopped or frozen, or that this process does not see.
    ///
    /// C: `open`, `getdents64` and `close` of the list of threads; `open`, `pread` and `close` for each thread.
    package static func isBusy(_ process: Int32) -> Bool {
        let own = text("/proc/thread-self/stat").map { $0.prefix { $0 != " " } }
        let threads = (try? Directory(opening: "/proc/\(process)/task").names()) ?? []
        return threads.contains { thread in
            thread != own ?? "" && isBusy(parsing: text("/proc/\(process)/task/\(thread)/stat") ?? "")
        }
    }

    /// Whether a thread's `stat` shows R (running or runnable) or D (uninterruptible, waiting for a disk).
    static func isBusy(parsing text: String) -> Bool {
        state(parsing: text).map { $0 == "R" || $0 == "D" } ?? false
    }

    /// Returns the state letter of a process or thread, from its `stat`.
    static func state(parsing text: String) -> Substring? {
        // "12 (a name) with any) characters) T 1 …"
        guard let end = text.lastIndex(of: ")") else { return nil }
        return text[text.index(after: end)...].split(separator: " ").first
    }

    /// Whether a process is an ancestor of this one; false if this process can't see it.
    ///
    /// C: `open`, `pread`, `close` for each process on the way.
    package static func isAncestor(_ process: Int32) -> Bool {
        var next = text("/proc/self/stat").flatMap { parent(parsing: $0) }
        // Parents may end meanwhile, and their numbers may be reused.
        for _ in 0..<1000 {
            guard let parent = next, parent > 0 else { return false }
            if parent == process { return true }
            next = text("/proc/\(parent)/stat").flatMap { Self.parent(parsing: $0) }
        }
        return false
    }

    /// Returns the number of the parent process, from a process's `stat`.
    static func parent(parsing text: String) -> Int32? {
        guard let end = text.lastIndex(of: ")") else { return nil }
        let words = text[text.index(after: end)...].split(separator: " ", maxSplits: 2)
        return words.count > 1 ? Int32(words[1]) : nil
    }

    /// Returns the PIDs, in this process's PID namespace, of the processes that hold a flock(2) on a file with this inode
    /// number.
    ///
    /// A PID that the holder has stored in a file would be less reliable: it may be from another namespace and denote a
    /// different process here. The result is also empty if the kernel does not report locks.
    ///
    /// C: `open`, `read`, `close`.
    package static func lockHolders(inode: UInt64) -> [Int32] {
        // A line has about 50 bytes.
        text("/proc/locks", limit: 1 << 20).map { lockHolders(inode: inode, parsing: $0) } ?? []
    }

    static func lockHolders(inode: UInt64, parsing text: String) -> [Int32] {
        // "3: FLOCK  ADVISORY  WRITE 1234 fe:00:12345 0 EOF"; for a waiter, "3: -> FLOCK …".
        text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count > 5, words[1] == "FLOCK",
                words[5].split(separator: ":").last.flatMap({ UInt64($0) }) == inode
            else { return nil }
            return Int32(words[4])
        }
    }

    /// Returns the content of a file; nil if it can't be read.
    ///
    /// C: `open`, `pread` (`read` if there is a limit), `close`.
    ///
    /// - Parameter limit: The maximum length in bytes; if nil, the function returns what a single `pread` of up to 8192
    ///   bytes returns.
    static func text(_ path: String, limit: Int? = nil) -> String? {
        do throws(Errno) {
            let file = try FileDescriptor(opening: path, .readOnly)
            guard let limit else { return String(decoding: try file.read(8192), as: UTF8.self) }
            return String(decoding: try file.readToEnd(limit: limit) ?? [], as: UTF8.self)
        } catch {
            return nil
        }
    }
}
