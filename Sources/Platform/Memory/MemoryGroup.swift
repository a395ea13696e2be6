// SPDX-License-Identifier: Apache-2.0

/// A control group that limits a process's memory, cgroups(7).
struct MemoryGroup: Sendable, Equatable {
    /// The version of the kernel's interface, which determines the file names.
    enum Version: Sendable {
        /// Documentation/admin-guide/cgroup-v1/memory.rst.
        case one
        /// Documentation/admin-guide/cgroup-v2.rst.
        case two

        /// The file with the group's memory usage.
        var usage: String { self == .one ? "memory.usage_in_bytes" : "memory.current" }

        /// The files with the limits; beyond the first limit of version 2, `memory.high`, the kernel slows the group
        /// down.
        var limits: [String] { self == .one ? ["memory.limit_in_bytes"] : ["memory.high", "memory.max"] }

        /// The lines of memory.stat with the page cache of the group and its descendants.
        var pageCache: [String] {
            let names = ["inactive_file", "active_file"]
            return self == .one ? names.map { "total_\($0)" } : names
        }
    }

    let version: Version
    /// The mount point of the hierarchy.
    let root: String
    /// The path below the mount point, beginning with a slash; empty for the root group.
    let path: String

    var directory: String { root + path }

    /// Returns the groups of this process whose usage can be read.
    ///
    /// C: `open`, `pread` and `close` of `/proc/self/cgroup`, and of one file for each candidate.
    static func own() -> [MemoryGroup] {
        guard let text = ProcFiles.text("/proc/self/cgroup") else { return [] }
        return candidates(parsing: text).filter {
            ProcFiles.text("\($0.directory)/\($0.version.usage)") != nil
        }
    }

    /// Returns the directories that may be the groups of a process.
    ///
    /// In a container without a cgroup namespace the path is the host's, and the container's group is at the root.
    static func candidates(parsing text: String) -> [MemoryGroup] {
        var groups: [MemoryGroup] = []
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            // A path outside this process's namespace begins with `/..`.
            guard parts.count == 3, parts[2].hasPrefix("/"), !parts[2].hasPrefix("/..") else { continue }
            let path = parts[2] == "/" ? "" : String(parts[2])
            if parts[0] == "0", parts[1].isEmpty {
                // If version 1 is also mounted, version 2 is at the second path.
                for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
                    groups.append(MemoryGroup(version: .two, root: root, path: path))
                }
            } else if parts[1].split(separator: ",").contains("memory") {
                let root = "/sys/fs/cgroup/memory"
                groups.append(MemoryGroup(version: .one, root: root, path: path))
                if !path.isEmpty { groups.append(MemoryGroup(version: .one, root: root, path: "")) }
            }
        }
        return groups
    }

    /// The limits of this group and of all its parent groups; empty if none of them has a limit.
    var limits: [Int64] {
        var groups = [root]
        for name in path.split(separator: "/") { groups.append("\(groups[groups.count - 1])/\(name)") }
        return groups.flatMap { group in
            version.limits.compactMap { ProcFiles.text("\(group)/\($0)").flatMap { Self.bytes(parsing: $0) } }
        }
    }

    /// Returns the text of a file of the group.
    func text(_ name: String) -> String? { ProcFiles.text("\(directory)/\(name)") }

    /// Returns the pressure that follows from how close the group's usage is to its limit.
    ///
    /// C: `open`, `pread` and `close` of up to three files, and of a fourth if the group is nearly full.
    func pressure() -> MemoryPressure {
        let limits = version.limits.compactMap { text($0).flatMap { Self.bytes(parsing: $0) } }
        guard let used = text(version.usage).flatMap({ Self.bytes(parsing: $0) }), let limit = limits.min()
        else { return .none }
        let pressure = MemoryPressure(used: used, limit: limit)
        // A group normally fills up with page cache and stays full, so the page cache is read only for a full group.
        // Without that number a full group indicates nothing.
        guard pressure > .none, let statistics = text("memory.stat") else { return .none }
        return MemoryPressure(used: used - min(used, pageCache(parsing: statistics)), limit: limit)
    }

    // MARK: Formats

    /// Returns the number in a file that contains one; nil for "max", which means no limit.
    static func bytes(parsing text: String) -> Int64? {
        text.split(separator: "\n").first.flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }

    /// Returns the bytes of page cache in memory.stat.
    func pageCache(parsing text: String) -> Int64 {
        version.pageCache.reduce(0) { $0 + (ProcFiles.number(after: $1, in: text) ?? 0) }
    }
}
