// SPDX-License-Identifier: Apache-2.0

/// The amount of memory that this process may use.
package enum MemoryAllowance {
    /// Returns the machine's memory in bytes, or the limit of the process's control group or of a parent group if that is
    /// lower; nil if the kernel reports none of them.
    ///
    /// C: `open`, `pread` and `close` of `/proc/meminfo`, of `/proc/self/cgroup`, and of one to three files of each group.
    package static func bytes() -> Int64? {
        let machine = ProcFiles.text("/proc/meminfo").flatMap { ProcFiles.totalMemory(parsing: $0) }
        // Version 1 of control groups reports a missing limit as a number that no machine can reach.
        return (MemoryGroup.own().flatMap(\.limits) + [machine].compactMap { $0 }).min()
    }
}
