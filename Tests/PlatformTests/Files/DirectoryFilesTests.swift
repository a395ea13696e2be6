// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) final class DirectoryFilesTests {
    private let directory: TemporaryDirectory
    private let handle: Directory

    init() throws {
        directory = try TemporaryDirectory()
        handle = try Directory(opening: directory.path)
    }

    private func listed() throws -> [String: ListedFile] {
        var found: [String: ListedFile] = [:]
        try handle.forEachFile { (name, file) in
            #expect(found.updateValue(file, forKey: String(decoding: name)) == nil, "each is told once")
        }
        return found
    }

    @Test func `each file is listed with its inode and kind, every time`() throws {
        _ = try handle.open("file", [.writeOnly, .create], mode: 0o600)
        try handle.makeDirectoryIfMissing("directory", mode: 0o700)
        try FileManager.default.createSymbolicLink(
            atPath: directory.path + "/link",
            withDestinationPath: "file"
        )
        #expect(mkfifo(directory.path + "/pipe", 0o600) == 0)
        // Other file systems may omit the kind.
        let keepsKinds = try handle.descriptor.fileSystem().kind.name == "ext4"
        for _ in 0..<2 {
            let files = try listed()
            #expect(files.keys.sorted() == ["directory", "file", "link", "pipe"])
            for (name, file) in files {
                let status = try handle.status(of: RelativePath(name))
                #expect(file.inode == status.identity.inode)
                #expect(file.kind == status.kind || file.kind == nil && !keepsKinds)
            }
        }
    }

    @Test func `more names than one system call returns are all listed`() throws {
        let names = (0..<1000).map { String(format: "%064d", $0) }
        for name in names { _ = try handle.open(RelativePath(name), [.writeOnly, .create], mode: 0o600) }
        #expect(try listed().keys.sorted() == names)
    }

    @Test func `a regular file can't be listed`() throws {
        let file = Directory(owning: try handle.open("file", [.readWrite, .create], mode: 0o600))
        #expect(throws: Errno.notDirectory) { try file.forEachFile { (_, _) in } }
    }
}
