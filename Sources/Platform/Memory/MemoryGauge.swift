// SPDX-License-Identifier: Apache-2.0

/// Tells how short memory is; meant to be asked about once a second.
///
/// Looks at the control group that the process was in when this was made (version 2), else at the whole
/// machine. The limits of the groups above are not looked at: their stalls show in the group's own.
package struct MemoryGauge: Sendable {
    /// The directory of the control group.
    private let group: String?
    /// The file of stalls.
    private let stalls: String?

    /// A gauge of this process; nil where the kernel tells nothing (no PSI and no control group).
    ///
    /// C: `open`, up to 6, each with `pread` and `close`, once.
    package init?() {
        self.init(group: Self.ownGroup(), machine: "/proc/pressure/memory")
    }

    /// A gauge of the control group whose files are in `group`, and where that has no file of stalls of those in
    /// `machine`.
    init?(group: String?, machine: String? = nil) {
        self.group = group
        // Opening works also where pressure is not measured; only reading says so (EOPNOTSUPP).
        stalls = [group.map { $0 + "/memory.pressure" }, machine].compactMap { $0 }
            .first { ProcFiles.text($0) != nil }
        if stalls == nil && text("memory.current") == nil { return nil }
    }

    /// What is in a file of the control group.
    private func text(_ name: String) -> String? { group.flatMap { ProcFiles.text($0 + "/" + name) } }

    /// How short memory is now: the worse of what the stalls and the group's allowance say.
    ///
    /// C: `open`, `pread` and `close` of the stalls' file, of three more in a control group, and of a fifth when it is
    /// nearly full. A file that can't be read (the group was removed, no descriptor is left) counts as no
    /// pressure.
    package func pressure() -> MemoryPressure {
        let stalled = stalls.flatMap { ProcFiles.text($0) }.flatMap { Self.stall(parsing: $0) } ?? 0
        return max(MemoryPressure(stalled: stalled), groupPressure())
    }

    private func groupPressure() -> MemoryPressure {
        let limits = ["memory.high", "memory.max"].compactMap { text($0).flatMap { Self.bytes(parsing: $0) } }
        guard let used = text("memory.current").flatMap({ Self.bytes(parsing: $0) }),
            let limit = limits.min()
        else { return .none }
        let pressure = MemoryPressure(used: used, limit: limit)
        // Groups fill up with page cache and stay full: only then is it worth finding out how much of it that is, and
        // without that a full one tells nothing.
        guard pressure > .none, let statistics = text("memory.stat") else { return .none }
        return MemoryPressure(used: used - min(used, Self.pageCache(parsing: statistics)), limit: limit)
    }

    /// The directory of this process's control group of version 2; nil where there is none.
    private static func ownGroup() -> String? {
        guard let path = ProcFiles.text("/proc/self/cgroup").flatMap({ groupPath(parsing: $0) }) else {
            return nil
        }
        // Beside version 1 it is mounted at the second place.
        return ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map { $0 + path }
            .first { ProcFiles.text($0 + "/memory.current") != nil }
    }

    // MARK: Formats

    /// The path in /proc/self/cgroup of version 2's group, without a slash at the end: the line `0::/a/b`.
    ///
    /// Nil for one outside of what this process can see, `/../a`.
    static func groupPath(parsing text: String) -> String? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("0::/") }
        guard let path = line?.dropFirst("0::".count), !path.hasPrefix("/..") else { return nil }
        return path == "/" ? "" : String(path)
    }

    /// The percentage of the last ten seconds in which some task waited for memory, from a pressure file; nil for
    /// anything else.
    ///
    /// `some avg10=0.12 avg60=0.05 avg300=0.00 total=12345`, Documentation/accounting/psi.rst.
    static func stall(parsing text: String) -> Double? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("some ") }
        let field = line?.split(separator: " ").first { $0.hasPrefix("avg10=") }
        let percent = field.flatMap { Double($0.dropFirst("avg10=".count)) }
        return percent.flatMap { $0.isFinite && $0 >= 0 ? $0 : nil }
    }

    /// The number in memory.current, memory.high or memory.max; nil for "max", which means that there is none.
    static func bytes(parsing text: String) -> Int64? {
        text.split(separator: "\n").first.flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }

    /// The bytes of page cache in memory.stat: `inactive_file` and `active_file`.
    static func pageCache(parsing text: String) -> Int64 {
        ["inactive_file", "active_file"].reduce(0) { $0 + (ProcFiles.number(after: $1, in: text) ?? 0) }
    }
}
