// SPDX-License-Identifier: Apache-2.0

import Foundation
import Platform
import TestSupport
import Testing

@Suite(.takesTurns) struct ChildProcessTests {
    private func text(of child: borrowing ChildProcess) throws -> String {
        String(decoding: try child.output.readToEnd(limit: 1 << 20) ?? [], as: UTF8.self)
    }

    @Test
    func `standard input and output are pipes, and the end of input is delivered`() throws {
        var child = try ChildProcess(starting: "/bin/cat", [])
        try child.send("from parent to child\n")
        child.closeInput()
        #expect(try text(of: child) == "from parent to child\n")
        #expect(try child.wait() == .exited(0))
    }

    @Test
    func `arguments are passed unchanged`() throws {
        var child = try ChildProcess(
            starting: "/bin/sh",
            ["-c", "printf '<%s>' \"$@\"", "sh", "a b", "", "*", "ü"]
        )
        #expect(try text(of: child) == "<a b><><*><ü>")
        #expect(try child.wait() == .exited(0))
    }

    @Test
    func `an exit status is reported, also the second time`() throws {
        var child = try ChildProcess(starting: "/bin/sh", ["-c", "exit 65"])
        #expect(try child.wait() == .exited(65))
        #expect(try child.wait() == .exited(65))
    }

    @Test
    func `a fatal signal is reported`() throws {
        var child = try ChildProcess(starting: "/bin/cat", [])
        child.send(Signal.kill)
        #expect(try child.wait() == .killed(.kill))
    }

    /// Not all descriptors of the test runner are close-on-exec, so only those opened here are checked.
    @Test
    func `a child inherits neither open files nor the pipes of its siblings`() throws {
        let held = try FileDescriptor(opening: "/proc/self/status", .readOnly)
        let sibling = try ChildProcess(starting: "/bin/cat", [])
        let manager = FileManager.default
        let ours = try [held.rawValue, sibling.output.rawValue].map {
            try manager.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
        }
        var child = try ChildProcess(starting: "/bin/ls", ["-l", "/proc/self/fd"])
        let listing = try text(of: child)
        #expect(try child.wait() == .exited(0))
        #expect(listing.contains("pipe:["), "it has pipes of its own")
        for target in ours { #expect(!listing.contains(target)) }
    }

    @Test
    func `environment variables are added and replaced, the rest is inherited`() throws {
        let added = ["DISKCACHE_TEST_NEW": "1=2", "HOME": "/elsewhere"]
        var child = try ChildProcess(starting: "/usr/bin/env", [], environment: added)
        let lines = try text(of: child).split(separator: "\n")
        #expect(lines.contains("DISKCACHE_TEST_NEW=1=2"))
        #expect(lines.filter { $0.hasPrefix("HOME=") } == ["HOME=/elsewhere"])
        #expect(lines.contains { $0.hasPrefix("PATH=") })
        #expect(try child.wait() == .exited(0))
    }

    @Test
    func `a missing program is an error at the start`() {
        #expect(throws: Errno.noEntry) {
            _ = try ChildProcess(starting: "/nonexistent/program", [])
        }
    }

    @Test
    func `a child that was not waited for ends with its owner`() throws {
        var identifier: Int32 = 0
        do {
            let child = try ChildProcess(starting: "/bin/sleep", ["1000"])
            identifier = child.identifier
            #expect(kill(identifier, 0) == 0)
        }
        // Killed and waited for: the process ID names no process, not even a zombie.
        #expect(kill(identifier, 0) == -1 && errno == ESRCH)
    }

    @Test
    func `waiting for several pipes returns the readable ones`() throws {
        let silent = try ChildProcess(starting: "/bin/sleep", ["1000"])
        let talking = try ChildProcess(starting: "/bin/sh", ["-c", "echo ready; exec sleep 1000"])
        let both = [silent.output.rawValue, talking.output.rawValue]
        #expect(try Readiness.wait(for: both, limit: hangLimit) == [talking.output.rawValue])
        #expect(try talking.output.readAvailable() == Array("ready\n".utf8))
        #expect(try Readiness.wait(for: both, limit: .milliseconds(1)).isEmpty)
    }
}
