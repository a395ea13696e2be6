// SPDX-License-Identifier: Apache-2.0

/// The control group whose memory a process may use, cgroups(7).
struct MemoryGroup: Sendable, Equatable {
    /// The interface of the kernel: which files say what.
    enum Version: Sendable {
        /// Documentation/admin-guide/cgroup-v1/memory.rst.
        case one
        /// Documentation/admin-guide/cgroup-v2.rst.
        case two

        /// The file that says how much the group uses.
        var usage: String { self == .one ? "memory.usage_in_bytes" : "memory.current" }

        /// The files with the limits: beyond the first of version 2 the kernel slows the group down.
        var limits: [String] { self == .one ? ["memory.limit_in_bytes"] : ["memory.high", "memory.max"] }

        /// The lines of memory.stat with the page cache of the group and of those below it.
        var pageCache: [String] {
            let names = ["inactive_file", "active_file"]
            return self == .one ? names.map { "total_\($0)" } : names
        }
    }

    let version: Version
    /// The directory at the top.
    let root: String
    /// Below it, beginning with a slash; empty for the top itself.
    let path: String

    var directory: String { root + path }

    /// The groups of this process whose files are there.
    ///
    /// C: `open`, `read` and `close` of `/proc/self/cgroup`, and of one file for each place.
    static func own() -> [MemoryGroup] {
        guard let text = ProcFiles.text("/proc/self/cgroup") else { return [] }
        return candidates(parsing: text).filter {
            ProcFiles.text("\($0.directory)/\($0.version.usage)") != nil
        }
    }

    /// Where the groups of a process may be.
    ///
    /// In a container whose groups have no namespace of their own the path is the host's, and the container's
    /// group is at the top.
    static func candidates(parsing text: String) -> [MemoryGroup] {
        var groups: [MemoryGroup] = []
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
            // A path outside of what this process can see begins with `/..`.
            guard parts.count == 3, parts[2].hasPrefix("/"), !parts[2].hasPrefix("/..") else { continue }
            let path = parts[2] == "/" ? "" : String(parts[2])
            if parts[0] == "0", parts[1].isEmpty {
                // Beside version 1 it is mounted at the second place.
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

    /// What this group and those above it may use, as far as they have limits.
    var limits: [Int64] {
        var groups = [root]
        for name in path.split(separator: "/") { groups.append("\(groups[groups.count - 1])/\(name)") }
        return groups.flatMap { group in
            version.limits.compactMap { ProcFiles.text("\(group)/\($0)").flatMap { Self.bytes(parsing: $0) } }
        }
    }

    /// The text of a file of the group.
    func text(_ name: String) -> String? { ProcFiles.text("\(directory)/\(name)") }

    /// How near the group is to its limit.
    ///
    /// C: `open`, `read` and `close` of three files, and of a fourth when it is nearly full.
    func pressure() -> MemoryPressure {
        let limits = version.limits.compactMap { text($0).flatMap { Self.bytes(parsing: $0) } }
        guard let used = text(version.usage).flatMap({ Self.bytes(parsing: $0) }), let limit = limits.min()
        else { return .none }
        let pressure = MemoryPressure(used: used, limit: limit)
        // Groups fill up with page cache and stay full: only then is it worth finding out how much of it that is, and
        // without that a full one tells nothing.
        guard pressure > .none, let statistics = text("memory.stat") else { return .none }
        return MemoryPressure(used: used - min(used, pageCache(parsing: statistics)), limit: limit)
    }

    // MARK: Formats

    /// The number in a file with one; nil for "max", which means that there is none.
    static func bytes(parsing text: String) -> Int64? {
        text.split(separator: "\n").first.flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }

    /// The bytes of page cache in memory.stat.
    func pageCache(parsing text: String) -> Int64 {
        version.pageCache.reduce(0) { $0 + (ProcFiles.number(after: $1, in: text) ?? 0) }
    }
}
