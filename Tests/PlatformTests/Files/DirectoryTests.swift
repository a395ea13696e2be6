// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) final class DirectoryTests {
    let directory: TemporaryDirectory
    let handle: Directory

    init() throws {
        directory = try TemporaryDirectory()
        handle = try Directory(opening: directory.path)
    }

    private func write(_ text: String, to name: RelativePath) throws {
        try handle.open(name, [.writeOnly, .create, .truncate], mode: 0o600).writeAll(Array(text.utf8).span)
    }

    @Test func `an unnamed file appears whole when it is linked, and only once`() throws {
        let file = try handle.open(".", [.readWrite, .temporary], mode: 0o400)
        try file.writeAll(Array("hello".utf8).span)
        #expect(try handle.names().isEmpty)
        try handle.link(file, as: "name")
        #expect(try handle.names() == ["name"])
        #expect(throws: Errno.exists) { try handle.link(file, as: "name") }
        #expect(try handle.status(of: "name").permissions == 0o400)
    }

    @Test func `no symbolic link is followed, at the end of a path or inside it`() throws {
        try handle.makeDirectoryIfMissing("real", mode: 0o700)
        try write("x", to: "real/file")
        try FileManager.default.createSymbolicLink(
            atPath: directory.path + "/link",
            withDestinationPath: "real"
        )
        try FileManager.default.createSymbolicLink(
            atPath: directory.path + "/end",
            withDestinationPath: "real/file"
        )
        #expect(throws: Errno.tooManyLinks) { _ = try handle.open("link/file", .readOnly).rawValue }
        #expect(throws: Errno.tooManyLinks) { _ = try handle.open("end", .readOnly).rawValue }
        #expect(try handle.status(of: "end").kind == .symbolicLink)
        #expect(try handle.open("real/file", .readOnly).status().size == 1)
    }

    /// Each call that creates, changes or deletes a name, with a path whose directory is a link.
    @Test func `no call that changes a file follows a symbolic link inside the path`() throws {
        try handle.makeDirectoryIfMissing("elsewhere", mode: 0o700)
        try write("x", to: "elsewhere/file")
        try write("y", to: "other")
        try FileManager.default.createSymbolicLink(
            atPath: directory.path + "/link",
            withDestinationPath: "elsewhere"
        )
        let before = try handle.status(of: "elsewhere/file")
        let unnamed = try handle.open(".", [.readWrite, .temporary], mode: 0o400)
        let value: [UInt8] = [1]
        let calls: [(String, () throws -> Void)] = [
            ("link", { try self.handle.link(unnamed, as: "link/new") }),
            ("rename from", { try self.handle.rename("link/file", to: self.handle, "moved") }),
            ("rename to", { try self.handle.rename("other", to: self.handle, "link/file") }),
            ("unlink", { try self.handle.unlink("link/file") }),
            ("touch", { try self.handle.touch("link/file") }),
            ("access time", { try self.handle.setAccessTime(of: "link/file", to: .distantPast) }),
            ("attribute", { try self.handle.setAttribute("user.dc", of: "link/file", to: value.span) }),
            ("directory", { try self.handle.makeDirectoryIfMissing("link/new", mode: 0o700) }),
            (
                "create",
                { _ = try self.handle.open("link/new", [.writeOnly, .create], mode: 0o600).rawValue }
            ),
        ]
        for (name, call) in calls {
            let error = #expect(throws: Errno.self, "\(name)") { try call() }
            #expect(error == .tooManyLinks || error == .notDirectory, "\(name): \(String(describing: error))")
        }
        #expect(try handle.openDirectory("elsewhere").names() == ["file"])
        #expect(try handle.status(of: "elsewhere/file") == before)
        #expect(try handle.attribute("user.dc", of: "elsewhere/file") == nil)
    }

    /// Runs beside a thread that swaps the directory for a link and back as often as it can.
    @Test func `a directory that is swapped for a link while files are created redirects none of them`()
        throws
    {
        try handle.makeDirectoryIfMissing("shard", mode: 0o700)
        try handle.makeDirectoryIfMissing("elsewhere", mode: 0o700)
        let path = directory.path
        try FileManager.default.createSymbolicLink(
            atPath: path + "/link",
            withDestinationPath: "elsewhere"
        )
        let isOver = Locked(false)
        let thread = Thread {
            while !isOver.withLock({ $0 }) {
                let moves = [["shard", "kept"], ["link", "shard"], ["shard", "link"], ["kept", "shard"]]
                for names in moves.map({ $0.map { path + "/" + $0 } }) {
                    #expect(rename(names[0], names[1]) == 0)
                }
            }
        }
        thread.start()
        var made = 0
        for number in 0..<4000 {
            let file = try handle.open(".", [.readWrite, .temporary], mode: 0o400)
            var name: RelativePath = "shard/"
            for digit in String(number).utf8 { name.append(digit) }
            do throws(Errno) {
                try handle.link(file, as: name)
                made += 1
            } catch {
                #expect([.tooManyLinks, .notDirectory, .noEntry].contains(error))
            }
        }
        isOver.withLock { $0 = true }
        while !thread.isFinished { sched_yield() }
        #expect(made > 0)
        let places = try ["shard", "link"].filter {
            try handle.status(of: RelativePath($0)).kind == .directory
        }
        #expect(try handle.openDirectory(RelativePath(places[0])).names().count == made)
        #expect(try handle.openDirectory("elsewhere").names().isEmpty)
    }

    @Test(arguments: [S_IFIFO, S_IFSOCK, S_IFCHR, S_IFDIR])
    func `a file that is not regular is neither opened, waited for nor read`(kind: mode_t) throws {
        let path = directory.path + "/special"
        // Only root can create a device such as /dev/zero.
        if kind == S_IFCHR, geteuid() != 0 { return }
        #expect((kind == S_IFDIR ? mkdir(path, 0o700) : mknod(path, kind | 0o600, 1 << 8 | 5)) == 0)
        let expected: Errno = kind == S_IFDIR ? .isDirectory : .noDeviceOrAddress
        for flags: OpenFlags in [
            .readOnly, .writeOnly, .readWrite, [.readWrite, .create], [.writeOnly, .append, .create],
        ] {
            #expect(throws: expected) {
                _ = try handle.open("special", flags, mode: flags.contains(.create) ? 0o600 : 0).rawValue
            }
        }
        for count in [10, 2 << 20] {
            // A device returns as many zeros as requested, so a short read succeeds; the caller's digest check detects it.
            if kind == S_IFCHR, count < 1 << 20 { continue }
            #expect(throws: expected) { try handle.contents(of: "special", count: count) { _ in true } }
        }
        if kind != S_IFDIR {
            #expect(throws: Errno.notDirectory) { _ = try handle.openDirectory("special").names() }
        }
    }

    @Test func `a pipe whose writer sends nothing is not waited for`() throws {
        let path = directory.path + "/pipe"
        #expect(mkfifo(path, 0o600) == 0)
        let writer = Glibc.open(path, O_RDWR | O_CLOEXEC)
        defer { Glibc.close(writer) }
        #expect(throws: Errno.noDeviceOrAddress) { try handle.contents(of: "pipe", count: 10) { _ in true } }
    }

    @Test func `a descriptor closed elsewhere in the program does not end the process`() async {
        await #expect(processExitsWith: .success) {
            let directory = try TemporaryDirectory()
            let handle = try Directory(opening: directory.path)
            let file = try handle.open("file", [.readWrite, .create], mode: 0o600)
            #expect(try file.tryLock(.exclusive))
            close(file.rawValue)
            file.unlock()
            file.close()
            #expect(throws: Errno.badDescriptor) {
                close(handle.descriptor.rawValue)
                _ = try handle.names()
            }
        }
    }

    @Test func `attributes are set, replaced and read, and nil if absent`() throws {
        try write("", to: "file")
        #expect(try handle.attribute("user.dc", of: "file") == nil)
        let long = [UInt8](repeating: 7, count: 1000)
        try handle.setAttribute("user.dc", of: "file", to: [UInt8]([1, 2, 3]).span)
        #expect(try handle.attribute("user.dc", of: "file") == [1, 2, 3])
        try handle.setAttribute("user.dc", of: "file", to: long.span)
        #expect(try handle.attribute("user.dc", of: "file") == long)
        #expect(throws: Errno.noEntry) { try handle.attribute("user.dc", of: "absent") }
        #expect(try handle.open("file", .readOnly).attribute("user.dc") == long)
    }

    @Test func `the access time is set to the nanosecond, also before 1970`() throws {
        try write("", to: "file")
        let before = try handle.status(of: "file")
        let time = Timestamp(nanoseconds: 1_234_567_890_123_456_789)
        try handle.setAccessTime(of: "file", to: time)
        #expect(try handle.status(of: "file").accessed == time)
        #expect(try handle.status(of: "file").size == before.size)
        let early = Timestamp(nanoseconds: -1_500_000_000)
        try handle.setAccessTime(of: "file", to: early)
        #expect(try handle.status(of: "file").accessed == early)
    }

    @Test func `names lists each of many files once`() throws {
        for index in 0..<500 { try write("", to: RelativePath("file-\(index)")) }
        #expect(Set(try handle.names()).count == 500)
        #expect(try handle.names().count == 500)
    }

    @Test func `rename replaces a file, and unlink of a missing one is an error`() throws {
        try write("new", to: "a")
        try write("old", to: "b")
        try handle.rename("a", to: handle, "b")
        #expect(try handle.names() == ["b"])
        #expect(try handle.open("b", .readOnly).readExactly(3) == Data("new".utf8))
        #expect(throws: Errno.noEntry) { try handle.unlink("a") }
    }
}

@Suite(.takesTurns) struct FileDescriptorTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func file(holding bytes: [UInt8]) throws -> String {
        let path = directory.path + "/" + UUID().uuidString
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    @Test(arguments: [0, 1, 13, 14, 15, 4096, 300_000])
    func `readExactly returns the bytes of a file of that length and nil for any other`(count: Int) throws {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let path = try file(holding: bytes)
        #expect(try FileDescriptor(opening: path, .readOnly).readExactly(count) == Data(bytes))
        #expect(try FileDescriptor(opening: path, .readOnly).readExactly(count + 1) == nil)
        if count > 0 {
            #expect(try FileDescriptor(opening: path, .readOnly).readExactly(count - 1) == nil)
        }
    }

    @Test func `readToEnd returns nil beyond its limit`() throws {
        let path = try file(holding: [UInt8](repeating: 1, count: 70_000))
        #expect(try FileDescriptor(opening: path, .readOnly).readToEnd(limit: 70_000)?.count == 70_000)
        #expect(try FileDescriptor(opening: path, .readOnly).readToEnd(limit: 69_999) == nil)
    }

    @Test func `a copy starts at the source's offset and ends up at the target's`() throws {
        let source = try FileDescriptor(opening: try file(holding: Array("0123456789".utf8)), .readOnly)
        let path = try file(holding: Array("abc".utf8))
        let target = try FileDescriptor(opening: path, .readWrite)
        #expect(try target.readToEnd(limit: 3)?.count == 3)
        _ = lseek(source.rawValue, 4, SEEK_SET)
        try target.copyAll(from: source)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "abc456789")
    }

    @Test func `a file that the kernel can't copy is copied all the same`() throws {
        let source = try FileDescriptor(opening: "/proc/self/status", .readOnly)
        let path = try file(holding: [])
        try FileDescriptor(opening: path, .writeOnly).copyAll(from: source)
        #expect(try String(contentsOfFile: path, encoding: .utf8).hasPrefix("Name:"))
    }

    @Test func `a failed call names its error`() throws {
        #expect(throws: Errno.noEntry) {
            _ = try FileDescriptor(opening: directory.path + "/absent", .readOnly).rawValue
        }
        #expect(Errno.noEntry.description == "No such file or directory (ENOENT)")
    }
}
