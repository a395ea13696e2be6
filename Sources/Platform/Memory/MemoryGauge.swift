// SPDX-License-Identifier: Apache-2.0

/// Tells how short memory is; meant to be asked about once a second.
///
/// Looks at the control group that the process was in when this was made, else at the whole machine. The limits of
/// the groups above are not looked at: their stalls show in the group's own.
package struct MemoryGauge: Sendable {
    private let group: MemoryGroup?
    /// The file of stalls.
    private let stalls: String?

    /// A gauge of this process; nil where the kernel tells nothing (no PSI and no control group).
    ///
    /// C: `open`, up to 7, each with `pread` and `close`, once.
    package init?() {
        self.init(group: MemoryGroup.own().first, machine: "/proc/pressure/memory")
    }

    /// A gauge of a control group.
    ///
    /// If the group has no file of stalls, the stalls of `machine` count.
    init?(group: MemoryGroup?, machine: String? = nil) {
        self.group = group
        // Opening works also where pressure is not measured; only reading says so (EOPNOTSUPP).
        stalls = [group.map { $0.directory + "/memory.pressure" }, machine].compactMap { $0 }
            .first { ProcFiles.text($0) != nil }
        if stalls == nil, group.flatMap({ $0.text($0.version.usage) }) == nil { return nil }
    }

    /// How short memory is now: the worse of what the stalls and the group's allowance say.
    ///
    /// C: `open`, `pread` and `close` of the stalls' file, of three more in a control group, and of a fifth when it is
    /// nearly full. A file that can't be read (the group was removed, no descriptor is left) counts as no
    /// pressure.
    package func pressure() -> MemoryPressure {
        let stalled = stalls.flatMap { ProcFiles.text($0) }.flatMap { Self.stall(parsing: $0) } ?? 0
        return max(MemoryPressure(stalled: stalled), group?.pressure() ?? .none)
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
}
