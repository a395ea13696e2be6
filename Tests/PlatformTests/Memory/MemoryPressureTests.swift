// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct MemoryPressureTests {
    @Test func `the stall percentage is read from the "some" line`() {
        let text = """
            some avg10=12.34 avg60=5.00 avg300=1.00 total=2901082
            full avg10=99.00 avg60=0.00 avg300=0.00 total=1499481

            """
        #expect(MemoryGauge.stall(parsing: text) == 12.34)
    }

    @Test(arguments: [
        "", "full avg10=1.00", "some", "some avg10=", "some avg10=x", "some avg10=nan", "some avg10=-1",
    ])
    func `malformed pressure files are rejected`(text: String) {
        #expect(MemoryGauge.stall(parsing: text) == nil)
    }

    @Test func `stalls are some pressure from 10 percent and critical from 40`() {
        let levels = [0, 9.99, 10, 39.9, 40].map { MemoryPressure(stalled: $0) }
        #expect(levels == [.none, .none, .some, .some, .critical])
    }

    @Test func `memory use is some pressure from 90 percent of the allowance and critical from 97`() {
        let levels = [89, 90, 96, 97, 120].map { MemoryPressure(used: $0, limit: 100) }
        #expect(levels == [.none, .some, .some, .critical, .critical])
    }

    @Test func `byte counts are parsed, and "max" is nil`() {
        #expect(MemoryGroup.bytes(parsing: "4096\n") == 4096)
        #expect(MemoryGroup.bytes(parsing: "max\n") == nil)
        #expect(MemoryGroup.bytes(parsing: "") == nil)
        #expect(MemoryGroup.bytes(parsing: "-1\n") == nil)
    }

    @Test func `the page cache is the sum of active and inactive files`() {
        let text = "anon 5\nfile 900\nactive_file 30\ninactive_file 12\nslab 7\n"
        #expect(Self.group("/g").pageCache(parsing: text) == 42)
        let one = "total_active_file 30\ntotal_inactive_file 13\nactive_file 1\n"
        #expect(MemoryGroup(version: .one, root: "/g", path: "").pageCache(parsing: one) == 43)
    }

    private static func group(_ directory: String) -> MemoryGroup {
        MemoryGroup(version: .two, root: directory, path: "")
    }

    @Test func `groups of both cgroup versions are found`() {
        let paths = { (text: String) in MemoryGroup.candidates(parsing: text).map(\.directory) }
        let two = ["/sys/fs/cgroup/user.slice/b", "/sys/fs/cgroup/unified/user.slice/b"]
        let one = ["/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"]
        #expect(paths("5:cpu:/x\n4:hugetlb,memory:/a\n0::/user.slice/b\n") == one + two)
        #expect(paths("0::/\n") == ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"])
        #expect(paths("0::/../c\n") == [])
        #expect(paths("4:memory:/\n") == ["/sys/fs/cgroup/memory"])
        #expect(paths("4:name=memory:/a\n") == [])
    }

    @Test func `the gauge follows the files and does not count page cache`() throws {
        let directory = try TemporaryDirectory()
        func write(_ name: String, _ text: String) throws {
            // In place, as the kernel updates its files.
            let file = try FileDescriptor(
                opening: directory.path + "/" + name,
                [.writeOnly, .create, .truncate]
            )
            try file.writeAll(Array(text.utf8).span)
        }
        try write("memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
        try write("memory.current", "50\n")
        try write("memory.high", "max\n")
        try write("memory.max", "100\n")
        try write("memory.stat", "anon 50\nactive_file 0\ninactive_file 0\n")
        let made = MemoryGauge(group: Self.group(directory.path))
        let isMade = made != nil
        #expect(isMade)
        guard let gauge = made else { return }
        #expect(gauge.pressure() == .none)
        try write("memory.current", "99\n")
        #expect(gauge.pressure() == .critical)
        try write("memory.stat", "anon 50\nactive_file 9\ninactive_file 40\n")
        #expect(gauge.pressure() == .none)
        try write("memory.high", "50\n")
        #expect(gauge.pressure() == .critical)
        try write("memory.current", "1\n")
        #expect(gauge.pressure() == .none)
        try write("memory.pressure", "some avg10=20.00 avg60=0.00 avg300=0.00 total=0\n")
        #expect(gauge.pressure() == .some)
    }

    @Test func `a version 1 group is gauged by its own files`() throws {
        let directory = try TemporaryDirectory()
        func pressure(cached: Int) throws -> MemoryPressure? {
            for (name, text) in [
                ("memory.usage_in_bytes", "99\n"), ("memory.limit_in_bytes", "100\n"),
                ("memory.stat", "cache 0\ntotal_active_file \(cached)\ntotal_inactive_file 0\n"),
            ] {
                makeFile(directory.path + "/" + name, text)
            }
            return MemoryGauge(group: MemoryGroup(version: .one, root: directory.path, path: ""))?.pressure()
        }
        #expect(try pressure(cached: 0) == .critical)
        #expect(try pressure(cached: 50) == MemoryPressure.none)
    }

    /// Otherwise a group that is full of page cache would seem short of memory.
    @Test func `a file that can't be opened counts as no pressure`() throws {
        let directory = try TemporaryDirectory()
        let files = [
            ("memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"),
            ("memory.current", "99\n"), ("memory.high", "max\n"), ("memory.max", "100\n"),
            ("memory.stat", "anon 1\nactive_file 49\ninactive_file 49\n"),
        ]
        for (name, text) in files { makeFile(directory.path + "/" + name, text) }
        let gauge = try #require(MemoryGauge(group: Self.group(directory.path)))
        for number in 1...files.count {
            let left = Locked(number)
            let pressure = SystemCall.withFaults { call in
                guard call == .open else { return nil }
                let isMeant = left.withLock { left in
                    left -= 1
                    return left == 0
                }
                return isMeant ? .error(.tooManyOpenFiles) : nil
            } _: {
                gauge.pressure()
            }
            #expect(pressure == .none, "file \(number)")
            #expect(left.withLock { $0 } <= 0)
        }
    }

    @Test func `there is no gauge without the kernel's files`() throws {
        let isMade = MemoryGauge(group: Self.group(try TemporaryDirectory().path)) != nil
        #expect(!isMade)
    }

    @Test func `this machine's own pressure can be read`() {
        guard let gauge = MemoryGauge() else { return }
        #expect(gauge.pressure() <= .critical)
    }
}
