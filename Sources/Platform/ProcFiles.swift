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
