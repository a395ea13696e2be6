// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct ProcFilesTests {
    @Test func `memory is what can be had, and free swap`() throws {
        let text = "MemTotal:  100 kB\nMemAvailable:   7 kB\nSwapTotal: 9 kB\nSwapFree:  3 kB\n"
        let found = try #require(ProcFiles.availableMemory(parsing: text))
        #expect(found == (7168, 3072))
        #expect(ProcFiles.availableMemory(parsing: "MemTotal: 1 kB\n") == nil)
    }

    @Test func `this machine has memory`() throws {
        #expect(try #require(ProcFiles.availableMemory()).memory > 0)
    }

    @Test(arguments: [
        ("12 (a) T 1 2", true), ("12 (a) t 1 2", true), ("12 (a) S 1", false), ("12 (T) x) (T) R 1", false),
        ("12 (a) b) T 1", true), ("", nil), ("12 (a)", nil),
    ])
    func `a process's state is what follows its name`(text: String, isStopped: Bool?) {
        #expect(ProcFiles.isStopped(parsing: text) == isStopped)
    }

    @Test func `this process is not stopped, and none has no number`() {
        #expect(ProcFiles.isStopped(CurrentProcess.identifier) == false)
        #expect(ProcFiles.isStopped(-1) == nil)
    }
}
