// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct MemoryAllowanceTests {
    @Test func `the total memory is parsed`() {
        let text = "MemTotal:       2048 kB\nMemFree:  7 kB\n"
        #expect(ProcFiles.totalMemory(parsing: text) == 2_097_152)
        #expect(ProcFiles.totalMemory(parsing: "MemFree: 7 kB\n") == nil)
    }

    @Test func `the limits of a group and of all its ancestors apply`() throws {
        let root = try TemporaryDirectory()
        try FileManager.default.createDirectory(
            atPath: root.path + "/slice/service",
            withIntermediateDirectories: true
        )
        makeFile(root.path + "/memory.max", "max\n")
        makeFile(root.path + "/slice/memory.max", "3000\n")
        makeFile(root.path + "/slice/memory.high", "max\n")
        makeFile(root.path + "/slice/service/memory.high", "2000\n")
        makeFile(root.path + "/memory.high", "5000\n")
        let limits = { (path: String) in
            MemoryGroup(version: .two, root: root.path, path: path).limits.sorted()
        }
        #expect(limits("/slice/service") == [2000, 3000, 5000])
        #expect(limits("/slice") == [3000, 5000])
        #expect(limits("") == [5000])
        #expect(limits("/other") == [5000])
        makeFile(root.path + "/slice/memory.limit_in_bytes", "9223372036854771712\n")
        makeFile(root.path + "/slice/service/memory.limit_in_bytes", "1000\n")
        let one = MemoryGroup(version: .one, root: root.path, path: "/slice/service")
        #expect(one.limits == [9_223_372_036_854_771_712, 1000])
    }

    @Test func `this process may use some memory, and no more than the machine has`() throws {
        let allowance = try #require(MemoryAllowance.bytes())
        let text = try #require(ProcFiles.text("/proc/meminfo"))
        let machine = try #require(ProcFiles.totalMemory(parsing: text))
        #expect(allowance > 0 && allowance <= machine)
    }
}
