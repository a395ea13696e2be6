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

    @Test func `who holds a lock is told by the kernel, not by a number that somebody has left`() throws {
        let text = """
            1: FLOCK  ADVISORY  WRITE 12 fe:00:345 0 EOF
            1: -> FLOCK  ADVISORY  WRITE 13 fe:00:345 0 EOF
            2: POSIX  ADVISORY  WRITE 14 fe:00:345 0 EOF
            """
        for (process, inode, holds) in [(12, 345, true), (13, 345, false), (14, 345, false), (12, 34, false)]
        {
            #expect(ProcFiles.holdsLock(Int32(process), inode: UInt64(inode), parsing: text) == holds)
        }
        let directory = try TemporaryDirectory()
        let file = try FileDescriptor(opening: directory.path + "/lock", [.readWrite, .create])
        let inode = try file.status().identity.inode
        #expect(!ProcFiles.holdsLock(CurrentProcess.identifier, inode: inode))
        #expect(try file.tryLock(.exclusive))
        #expect(ProcFiles.holdsLock(CurrentProcess.identifier, inode: inode))
        #expect(!ProcFiles.holdsLock(CurrentProcess.identifier + 1, inode: inode))
    }

    @Test func `this process is not stopped, and none has no number`() {
        #expect(ProcFiles.isStopped(CurrentProcess.identifier) == false)
        #expect(ProcFiles.isStopped(-1) == nil)
    }
}
