// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct OutputFileTests {
    let directory: TemporaryDirectory
    let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = directory.path + "/file"
    }

    private func write(_ text: String, to path: String) throws {
        try OutputFile.write(path) { (output) throws(Errno) in
            try output.writeAll(Array(text.utf8).span)
        }
    }

    private func contents(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `a file is created or replaced as a whole, and is unchanged if writing fails`() throws {
        try write("old", to: path)
        #expect(contents(path) == "old")
        #expect(throws: Errno.inputOutput) {
            try OutputFile.write(path) { (output) throws(Errno) in
                try output.writeAll(Array("half".utf8).span)
                throw .inputOutput
            }
        }
        #expect(contents(path) == "old")
        try write("new", to: path)
        #expect(contents(path) == "new")
        #expect(directory.files() == ["file"])
    }

    @Test func `a symbolic link stays, and its target is created or replaced`() throws {
        let link = directory.path + "/link"
        #expect(symlink("file", link) == 0)
        try write("first", to: link)
        #expect(contents(path) == "first")
        try write("second", to: link)
        #expect(contents(path) == "second")
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: link) == "file")
        let circle = directory.path + "/circle"
        #expect(symlink("circle", circle) == 0)
        #expect(throws: Errno.tooManyLinks) { try write("x", to: circle) }
    }

    @Test func `a /proc or /dev name of an open file is written to, not replaced`() throws {
        makeFile(path)
        let file = try FileDescriptor(opening: path, .writeOnly)
        let link = directory.path + "/out"
        #expect(symlink("/proc/self/fd/\(file.rawValue)", link) == 0)
        try file.writeAll(Array("before, ".utf8).span)
        try write("by number, ", to: "/dev/fd/\(file.rawValue)")
        try write("through", to: link)
        #expect(contents(path) == "before, by number, through")
        let target = try FileManager.default.destinationOfSymbolicLink(atPath: link)
        #expect(target.hasPrefix("/proc/self/fd/"))
        try write("nowhere", to: "/dev/null")
    }

    @Test func `a replaced file keeps its permissions`() throws {
        makeFile(path)
        #expect(chmod(path, 0o640) == 0)
        try write("x", to: path)
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o640)
    }

    @Test func `the replacement of a private file is private from its first byte on`() throws {
        makeFile(path)
        #expect(chmod(path, 0o640) == 0)
        let place = try Directory(opening: directory.path)
        let draft = RelativePath("draft")
        for (old, modes) in [
            (try FileStatus.of(path), [0o600, 0o640] as [UInt32]),
            (nil, [UInt32(usualMode), UInt32(usualMode)]),
        ] {
            try OutputFile.make(draft, in: place, like: old) { (file) throws(Errno) in
                #expect(try file.status().permissions == modes[0])
            }
            #expect(try place.status(of: draft).permissions == modes[1])
            try place.unlink(draft)
        }
    }

    @Test func `a file name may have the maximum length`() throws {
        let long = directory.path + "/" + String(repeating: "n", count: 255)
        try write("x", to: long)
        #expect(contents(long) == "x")
        #expect(directory.files().count == 1)
    }

    // MARK: Files of other users

    /// Whether root runs the tests; only root can create files of other users.
    static let isRoot = geteuid() == 0

    private func mode(_ path: String) -> mode_t {
        var status = stat()
        #expect(stat(path, &status) == 0)
        return status.st_mode & 0o7777
    }

    /// The mode that a new file gets under the current umask.
    private var usualMode: mode_t {
        let mask = umask(0o077)
        umask(mask)
        return 0o666 & ~mask
    }

    @Test func `set-user-ID and set-group-ID bits are dropped`() throws {
        makeFile(path)
        #expect(chmod(path, 0o6755) == 0)
        try write("x", to: path)
        #expect(mode(path) == 0o755)
    }

    @Test func `in a world-writable directory, a hard-linked file's permissions are not kept`() throws {
        let open = directory.path + "/open"
        #expect(mkdir(open, 0o700) == 0 && chmod(open, 0o1777) == 0)
        makeFile(path)
        #expect(chmod(path, 0o666) == 0 && link(path, open + "/file") == 0)
        try write("x", to: open + "/file")
        #expect(mode(open + "/file") == usualMode)
        #expect(contents(path) == "")
    }

    @Test(.enabled(if: isRoot, "only root can make a file of somebody else's"))
    func `the permissions of another user's file are not kept`() throws {
        makeFile(path)
        #expect(chown(path, 65534, 65534) == 0 && chmod(path, 0o6777) == 0)
        try write("x", to: path)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_uid == 0 && status.st_mode & 0o7777 == usualMode)
    }

    @Test(.enabled(if: isRoot, "only root can choose any group"))
    func `a replaced file keeps its group`() throws {
        makeFile(path)
        #expect(chown(path, 0, 65534) == 0 && chmod(path, 0o660) == 0)
        try write("x", to: path)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_gid == 65534 && status.st_mode & 0o7777 == 0o660)
    }

    @Test(.enabled(if: isRoot, "only root can make a link of somebody else's"))
    func `another user's link is followed only if no one else can write its directory`() throws {
        makeFile(path, "precious")
        let open = directory.path + "/open"
        #expect(mkdir(open, 0o700) == 0)
        for name in ["link", "up"] {
            #expect(symlink(name == "link" ? path : directory.path, "\(open)/\(name)") == 0)
            #expect(lchown("\(open)/\(name)", 65534, 65534) == 0)
        }
        for mode: mode_t in [0o1777, 0o770, 0o775] {
            #expect(chmod(open, mode) == 0)
            #expect(throws: Errno.accessDenied) { try write("x", to: open + "/link") }
            #expect(throws: Errno.accessDenied) { try write("x", to: open + "/up/file") }
            #expect(throws: Errno.accessDenied) { try write("x", to: open + "/up/new") }
        }
        #expect(chmod(open, 0o755) == 0 && chown(open, 65534, 65534) == 0)
        #expect(throws: Errno.accessDenied) { try write("x", to: open + "/link") }
        #expect(contents(path) == "precious")
        #expect(chown(open, 0, 0) == 0)
        try write("x", to: open + "/link")
        try write("y", to: open + "/up/new")
        #expect(contents(path) == "x" && contents(directory.path + "/new") == "y")
    }

    @Test(.enabled(if: isRoot, "only root can make a pipe of somebody else's"))
    func `another user's named pipe in a shared directory is not written to`() throws {
        let open = directory.path + "/open"
        #expect(mkdir(open, 0o700) == 0 && chmod(open, 0o1777) == 0)
        let pipe = open + "/pipe"
        #expect(mkfifo(pipe, 0o666) == 0 && chown(pipe, 65534, 65534) == 0)
        // With a reader, opening the pipe for writing would not block.
        let reader = Glibc.open(pipe, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        #expect(throws: Errno.accessDenied) { try write("x", to: pipe) }
        #expect(chown(pipe, 0, 0) == 0)
        try write("x", to: pipe)
        var byte: UInt8 = 0
        #expect(read(reader, &byte, 1) == 1)
    }

    @Test(
        arguments: [
            // File: owner, link count. Directory: owner, mode.
            (1000, 1, 1000, 0o755, true), (1000, 1, 0, 0o1777, true), (0, 1, 0, 0o1777, true),
            (7, 1, 0, 0o1777, false), (7, 1, 1000, 0o700, true), (7, 1, 0, 0o755, true),
            (7, 1, 1000, 0o770, false), (7, 1, 7, 0o700, false), (1000, 1, 7, 0o700, true),
            (1000, 2, 0, 0o1777, false), (0, 2, 7, 0o700, false), (0, 2, 0, 0o755, true),
        ] as [(UInt32, UInt64, UInt32, UInt32, Bool)]
    )
    func `a file is trusted by its owner, link count and directory`(
        owner: UInt32,
        names: UInt64,
        directoryOwner: UInt32,
        mode: UInt32,
        isTrusted: Bool
    ) {
        var (file, place) = (stat(), stat())
        (file.st_uid, file.st_nlink) = (owner, nlink_t(names))
        (place.st_uid, place.st_mode) = (directoryOwner, mode)
        let result = OutputPlace.isTrusted(FileStatus(file), in: FileStatus(place), user: 1000)
        #expect(result == isTrusted)
    }

    @Test func `intermediate directories are traversed as usual and need not be readable`() throws {
        let inner = directory.path + "/a/b"
        try FileManager.default.createDirectory(atPath: inner, withIntermediateDirectories: true)
        #expect(symlink("a/b", directory.path + "/to-b") == 0)
        #expect(symlink(inner + "/", directory.path + "/to-absolute") == 0)
        #expect(chmod(directory.path + "/a", 0o311) == 0)
        try write("1", to: directory.path + "/to-b/../b//./f1")
        try write("2", to: directory.path + "/to-absolute/f2")
        #expect(chmod(directory.path + "/a", 0o755) == 0)
        #expect(directory.files() == ["a/b/f1", "a/b/f2"])
        for (path, error) in [
            ("", Errno.noEntry), ("a", .isDirectory), ("a/b/..", .isDirectory), ("a/", .isDirectory),
            ("a/b/f1/", .notDirectory), ("a/b/f1/x", .notDirectory), ("none/x", .noEntry), ("new/", .noEntry),
        ] {
            let whole = path.isEmpty ? "" : directory.path + "/" + path
            #expect(throws: error) { try write("x", to: whole) }
        }
    }
}
