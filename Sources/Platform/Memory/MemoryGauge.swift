// SPDX-License-Identifier: Apache-2.0

/// A gauge of memory pressure, to be read about once a second.
///
/// It reads the control group that the process was in when the gauge was created; if there is none, the whole machine. It
/// does not read the limits of parent groups: stalls that they cause appear in the stalls of the group itself.
package struct MemoryGauge: Sendable {
    private let group: MemoryGroup?
    /// The path of the pressure file, which reports stalls.
    private let stalls: String?

    /// Creates a gauge for this process; nil if the kernel provides no data (neither PSI nor a control group).
    ///
    /// C: `open`, `pread` and `close` of up to 7 files.
    package init?() {
        self.init(group: MemoryGroup.own().first, machine: "/proc/pressure/memory")
    }

    /// Creates a gauge for a control group.
    ///
    /// If the group has no pressure file, the gauge reads the pressure file `machine`.
    init?(group: MemoryGroup?, machine: String? = nil) {
        self.group = group
        // Opening succeeds even if pressure is not measured; only reading fails (EOPNOTSUPP).
        stalls = [group.map { $0.directory + "/memory.pressure" }, machine].compactMap { $0 }
            .first { ProcFiles.text($0) != nil }
        if stalls == nil, group.flatMap({ $0.text($0.version.usage) }) == nil { return nil }
    }

    /// Returns the current memory pressure: the level of the stalls or the level of the group's usage, whichever is
    /// worse.
    ///
    /// C: `open`, `pread` and `close` of the pressure file, of up to three more files in a control group, and of a fifth
    /// if the group is nearly full. A file that can't be read (the group was removed, no descriptor is free) counts as no
    /// pressure.
    package func pressure() -> MemoryPressure {
        let stalled = stalls.flatMap { ProcFiles.text($0) }.flatMap { Self.stall(parsing: $0) } ?? 0
        return max(MemoryPressure(stalled: stalled), group?.pressure() ?? .none)
    }

    /// Returns the percentage of the last ten seconds in which some task waited for memory, from a pressure file; nil for
    /// any other text.
    ///
    /// `some avg10=0.12 avg60=0.05 avg300=0.00 total=12345`, Documentation/accounting/psi.rst.
    static func stall(parsing text: String) -> Double? {
        let line = text.split(separator: "\n").first { $0.hasPrefix("some ") }
        let field = line?.split(separator: " ").first { $0.hasPrefix("avg10=") }
        let percent = field.flatMap { Double($0.dropFirst("avg10=".count)) }
        return percent.flatMap { $0.isFinite && $0 >= 0 ? $0 : nil }
    }
}
