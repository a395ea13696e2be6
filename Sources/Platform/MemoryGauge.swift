// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Tells how short memory is, for who asks about once a second.
///
/// Looks at the control group that the process was in when this was made (version 2), else at the whole
/// machine. The limits of the groups above are not looked at: their stalls show in the group's own.
package struct MemoryGauge: ~Copyable, Sendable {
    private let stall: KernelFile?
    private let current: KernelFile?
    private let high: KernelFile?
    private let max: KernelFile?
    private let statistics: KernelFile?

    /// A gauge of this process; nil where the kernel tells nothing (no PSI and no control group).
    ///
    /// C: `open`, up to 11, once.
    package init?() {
        let group = Self.ownGroup()
        let file = { (name: String) in group.flatMap { KernelFile(path: $0 + "/" + name) } }
        let stall = file("memory.pressure") ?? KernelFile(path: "/proc/pressure/memory")
        self.init(
            stall: stall,
            current: file("memory.current"),
            high: file("memory.high"),
            max: file("memory.max"),
            statistics: file("memory.stat")
        )
    }

    /// A gauge of files elsewhere, for tests: a control group's in `group`.
    package init?(group: String) {
        self.init(
            stall: KernelFile(path: group + "/memory.pressure"),
            current: KernelFile(path: group + "/memory.current"),
            high: KernelFile(path: group + "/memory.high"),
            max: KernelFile(path: group + "/memory.max"),
            statistics: KernelFile(path: group + "/memory.stat")
        )
    }

    private init?(
        stall: consuming KernelFile?,
        current: consuming KernelFile?,
        high: consuming KernelFile?,
        max: consuming KernelFile?,
        statistics: consuming KernelFile?
    ) {
        let tellsNothing = stall == nil && current == nil
        self.stall = stall
        self.current = current
        self.high = high
        self.max = max
        self.statistics = statistics
        if tellsNothing { return nil }
    }

    /// How short memory is now: the worse of what the stalls and the group's allowance say.
    ///
    /// C: `pread`, one for the stalls, three more in a control group, and a fifth when it is nearly full. A
    /// file that can't be read (the group was removed) counts as no pressure.
    package func pressure() -> MemoryPressure {
        let stalled = stall?.text().flatMap { MemoryStall(parsing: $0)?.pressure } ?? .none
        return Swift.max(stalled, allowance()?.pressure ?? .none)
    }

    private func allowance() -> MemoryAllowance? {
        guard let used = current?.text().flatMap({ MemoryAllowance.bytes(parsing: $0) }) else { return nil }
        let limits = [
            high?.text().flatMap { MemoryAllowance.bytes(parsing: $0) },
            max?.text().flatMap { MemoryAllowance.bytes(parsing: $0) },
        ]
        guard let limit = limits.compactMap({ $0 }).min() else { return nil }
        var allowance = MemoryAllowance(used: used, limit: limit)
        // Groups fill up with page cache and stay full: only then is it worth the reading what of it that is.
        if allowance.pressure > .none, let text = statistics?.text() {
            allowance.used -= Swift.min(used, MemoryAllowance.pageCache(parsing: text))
        }
        return allowance
    }

    /// The directory of this process's control group of version 2; nil where there is none.
    private static func ownGroup() -> String? {
        guard let text = KernelFile(path: "/proc/self/cgroup")?.text(), let path = groupPath(parsing: text)
        else { return nil }
        // Beside version 1 it is mounted at the second place.
        for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
        where KernelFile(path: root + path + "/memory.current") != nil {
            return root + path
        }
        return nil
    }

    /// The path in /proc/self/cgroup of version 2's group, without a slash at the end: the line `0::/a/b`.
    ///
    /// Nil for one outside of what this process can see, `/../a`.
    package static func groupPath(parsing text: some StringProtocol) -> String? {
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("0::/") }) else {
            return nil
        }
        let path = line.dropFirst("0::".count)
        if path.hasPrefix("/..") { return nil }
        return path == "/" ? "" : String(path)
    }
}

/// A small text that the kernel makes up anew for each read from the start.
private struct KernelFile: ~Copyable, Sendable {
    private let descriptor: FileDescriptor

    /// Opens it; nil where it is not there or may not be read.
    init?(path: String) {
        do throws(Errno) {
            let file = try FileDescriptor(opening: path, .readOnly)
            // Opening works also where pressure is not measured; only reading says so (EOPNOTSUPP).
            if Self.text(of: file) == nil { return nil }
            descriptor = file
        } catch {
            return nil
        }
    }

    /// What is in it; nil where it can't be read.
    ///
    /// C: `pread`.
    func text() -> String? {
        Self.text(of: descriptor)
    }

    /// Its first 8 KiB; nil where it can't be read.
    private static func text(of file: borrowing FileDescriptor) -> String? {
        let number = file.rawValue
        return unsafe withUnsafeTemporaryAllocation(byteCount: 8192, alignment: 1) { buffer in
            do throws(Errno) {
                let count = try valueOrErrno {
                    unsafe pread(number, buffer.baseAddress, buffer.count, 0)
                }
                return unsafe String(decoding: buffer[..<count], as: UTF8.self)
            } catch {
                return nil
            }
        }
    }
}
