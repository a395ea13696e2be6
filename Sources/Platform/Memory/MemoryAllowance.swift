// SPDX-License-Identifier: Apache-2.0

/// How much memory this process may use.
package enum MemoryAllowance {
    /// Bytes: what the machine has, or what the process's control group (version 2) or one above it may use if that
    /// is less; nil where the kernel does not tell.
    ///
    /// C: `open`, `read` and `close` of `/proc/meminfo`, of `/proc/self/cgroup`, and of two files of each group.
    package static func bytes() -> Int64? {
        let machine = ProcFiles.text("/proc/meminfo").flatMap { ProcFiles.totalMemory(parsing: $0) }
        var limits = machine.map { [$0] } ?? []
        let own = ProcFiles.text("/proc/self/cgroup").flatMap { MemoryGauge.groupPath(parsing: $0) }
        if let own {
            // Beside version 1 it is mounted at the second place.
            for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
                limits += self.limits(from: root, to: own)
            }
        }
        return limits.min()
    }

    /// What the groups from `root` down to `path` may use, as far as they have limits.
    ///
    /// - Parameter path: below `root`, beginning with a slash; empty for `root` itself.
    static func limits(from root: String, to path: String) -> [Int64] {
        var groups = [root]
        for name in path.split(separator: "/") { groups.append("\(groups[groups.count - 1])/\(name)") }
        return groups.flatMap { group in
            ["memory.high", "memory.max"].compactMap { name in
                ProcFiles.text("\(group)/\(name)").flatMap { MemoryGauge.bytes(parsing: $0) }
            }
        }
    }
}
