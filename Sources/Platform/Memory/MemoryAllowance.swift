// SPDX-License-Identifier: Apache-2.0

/// How much memory this process may use.
package enum MemoryAllowance {
    /// Bytes: what the machine has, or what the process's control group or one above it may use if that is less; nil
    /// where the kernel does not tell.
    ///
    /// C: `open`, `read` and `close` of `/proc/meminfo`, of `/proc/self/cgroup`, and of one to three files of each group.
    package static func bytes() -> Int64? {
        let machine = ProcFiles.text("/proc/meminfo").flatMap { ProcFiles.totalMemory(parsing: $0) }
        // Version 1 says that there is no limit by one that no machine has.
        return (MemoryGroup.own().flatMap(\.limits) + [machine].compactMap { $0 }).min()
    }
}
