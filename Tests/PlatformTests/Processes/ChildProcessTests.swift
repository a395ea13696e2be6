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
    func `standard input and output are pipes, and the end of input can be seen`() throws {
        var child = try ChildProcess(starting: "/bin/cat", [])
        try child.send("from parent to child\n")
        child.closeInput()
        #expect(try text(of: child) == "from parent to child\n")
        #expect(try child.wait() == .exited(0))
    }

    @Test
    func `arguments arrive as they are, one by one`() throws {
        var child = try ChildProcess(
            starting: "/bin/sh",
            ["-c", "printf '<%s>' \"$@\"", "sh", "a b", "", "*", "ü"]
        )
        #expect(try text(of: child) == "<a b><><*><ü>")
        #expect(try child.wait() == .exited(0))
    }

    @Test
    func `an exit status is reported, also when asked for twice`() throws {
        var child = try ChildProcess(starting: "/bin/sh", ["-c", "exit 65"])
        #expect(try child.wait() == .exited(65))
        #expect(try child.wait() == .exited(65))
    }

    @Test
    func `a killing signal is reported as one`() throws {
        var child = try ChildProcess(starting: "/bin/cat", [])
        child.send(Signal.kill)
        #expect(try child.wait() == .killed(.kill))
    }

    /// The test runner's own descriptors are not all close-on-exec, so only ours are looked for.
    @Test
    func `a child gets neither open files nor the pipes of its siblings`() throws {
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
    func `a program that is not there is an error at the start`() {
        #expect(throws: Errno.noEntry) {
            _ = try ChildProcess(starting: "/nonexistent/program", [])
        }
    }

    @Test
    func `a child that nobody has waited for goes with its owner`() throws {
        var identifier: Int32 = 0
        do {
            let child = try ChildProcess(starting: "/bin/sleep", ["1000"])
            identifier = child.identifier
            #expect(kill(identifier, 0) == 0)
        }
        // Killed and waited for: the number names nothing, not even a zombie.
        #expect(kill(identifier, 0) == -1 && errno == ESRCH)
    }

    @Test
    func `waiting for several pipes gives those that have something`() throws {
        let silent = try ChildProcess(starting: "/bin/sleep", ["1000"])
        let talking = try ChildProcess(starting: "/bin/sh", ["-c", "echo ready; exec sleep 1000"])
        let both = [silent.output.rawValue, talking.output.rawValue]
        #expect(try Readiness.wait(for: both, limit: hangLimit) == [talking.output.rawValue])
        #expect(try talking.output.readAvailable() == Array("ready\n".utf8))
        #expect(try Readiness.wait(for: both, limit: .milliseconds(1)).isEmpty)
    }
}
