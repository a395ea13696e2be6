// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct ProcFilesTests {
    @Test func `available memory and free swap are parsed`() throws {
        let text = "MemTotal:  100 kB\nMemAvailable:   7 kB\nSwapTotal: 9 kB\nSwapFree:  3 kB\n"
        let found = try #require(ProcFiles.availableMemory(parsing: text))
        #expect(found == (7168, 3072))
        #expect(ProcFiles.availableMemory(parsing: "MemTotal: 1 kB\n") == nil)
    }

    @Test func `this machine has available memory`() throws {
        #expect(try #require(ProcFiles.availableMemory()).memory > 0)
    }

    @Test(arguments: [
        ("12 (a) T 1 2", "T"), ("12 (a) t 1 2", "t"), ("12 (a) S 1", "S"), ("12 (T) x) (T) R 1", "R"),
        ("12 (a) b) T 1", "T"), ("", nil), ("12 (a)", nil),
    ])
    func `a process's state is what follows its name`(text: String, state: String?) {
        #expect(ProcFiles.state(parsing: text).map(String.init) == state)
    }

    @Test(arguments: [
        ("12 (a) T 1 2", 1), ("12 (1) x) (T) R 77 1", 77), ("", nil), ("12 (a)", nil), ("12 (a) T", nil),
    ])
    func `a process's parent is what follows its state`(text: String, parent: Int32?) {
        #expect(ProcFiles.parent(parsing: text) == parent)
    }

    @Test func `the parent is an ancestor, this process and a missing one are not`() throws {
        #expect(ProcFiles.isAncestor(getppid()))
        #expect(!ProcFiles.isAncestor(CurrentProcess.identifier) && !ProcFiles.isAncestor(.max))
    }

    @Test func `lock holders are those that the kernel lists, without its waiters`() throws {
        let text = """
            1: FLOCK  ADVISORY  WRITE 12 fe:00:345 0 EOF
            1: -> FLOCK  ADVISORY  WRITE 13 fe:00:345 0 EOF
            2: POSIX  ADVISORY  WRITE 14 fe:00:345 0 EOF
            """
        for (process, inode, holds) in [(12, 345, true), (13, 345, false), (14, 345, false), (12, 34, false)]
        {
            let holders = ProcFiles.lockHolders(inode: UInt64(inode), parsing: text)
            #expect(holders.contains(Int32(process)) == holds)
        }
        let directory = try TemporaryDirectory()
        let file = try FileDescriptor(opening: directory.path + "/lock", [.readWrite, .create])
        let inode = try file.status().identity.inode
        #expect(!ProcFiles.lockHolders(inode: inode).contains(CurrentProcess.identifier))
        #expect(try file.tryLock(.exclusive))
        #expect(ProcFiles.lockHolders(inode: inode).contains(CurrentProcess.identifier))
    }

    @Test func `this process is not stopped, and a missing one has no state`() {
        #expect(ProcFiles.isStopped(CurrentProcess.identifier) == false)
        #expect(ProcFiles.isStopped(-1) == nil)
    }

    @Test(arguments: [("R", true), ("D", true), ("S", false), ("T", false), ("t", false), ("Z", false)])
    func `a process that runs or waits for a disk is busy`(state: String, isBusy: Bool) {
        #expect(ProcFiles.isBusy(parsing: "12 (a) b) \(state) 1 2") == isBusy)
    }

    @Test func `a text without a state is not busy`() {
        #expect(!ProcFiles.isBusy(parsing: ""))
    }

    @Test func `a process is busy while it runs, not while it sleeps, is stopped or gone`() throws {
        // It ends with the test process, even if that is killed.
        var busy = try ChildProcess(starting: "/bin/sh", ["-c", "while kill -0 $PPID; do :; done"])
        waitUntil("it runs") { ProcFiles.isBusy(busy.identifier) }
        busy.send(.stop)
        waitUntil("it is stopped") { !ProcFiles.isBusy(busy.identifier) }
        busy.send(.kill)
        _ = try busy.wait()
        #expect(!ProcFiles.isBusy(busy.identifier))
        var idle = try ChildProcess(starting: "/bin/cat", [])
        waitUntil("it waits for its input") { !ProcFiles.isBusy(idle.identifier) }
        idle.send(.kill)
        _ = try idle.wait()
    }
}
