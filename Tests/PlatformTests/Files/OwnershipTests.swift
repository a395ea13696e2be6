// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import Platform

@Suite(.enabled(if: geteuid() == 0, "only root can give files away"), .takesTurns)
final class OwnershipTests {
    private let directory: TemporaryDirectory
    private let handle: Directory

    /// Opens a directory that belongs to another user.
    init() throws {
        directory = try TemporaryDirectory()
        try #require(chown(directory.path, 65534, 65533) == 0 && chmod(directory.path, 0o700) == 0)
        handle = try Self.open(directory.path)
    }

    private static func open(_ path: String) throws -> Directory {
        let opened = try Directory(opening: path)
        return opened.owned(by: Ownership(of: try FileStatus.of(path), user: CurrentProcess.effectiveUser))
    }

    private func owner(_ name: RelativePath) throws -> [UInt32] {
        let status = try handle.status(of: name)
        return [status.owner, status.group]
    }

    @Test func `files that root creates in another user's directory belong to that user`() throws {
        try handle.open("exclusive", [.writeOnly, .create, .exclusive], mode: 0o600).close()
        try handle.open("created", [.writeOnly, .create], mode: 0o600).close()
        try handle.link(handle.open(".", [.readWrite, .temporary], mode: 0o600), as: "unnamed")
        try handle.makeDirectoryIfMissing("part", mode: 0o700)
        try handle.openDirectory("part").open("below", [.writeOnly, .create], mode: 0o600).close()
        for name: RelativePath in ["exclusive", "created", "unnamed", "part", "part/below"] {
            #expect(try owner(name) == [65534, 65533], "\(name)")
        }
    }

    /// A user who moves a file of root here must not become its owner.
    @Test func `existing files keep their owner`() throws {
        makeFile(directory.path + "/there", "secret")
        try handle.open("there", [.readWrite, .create], mode: 0o600).close()
        #expect(try owner("there") == [0, 0])
    }

    @Test func `files in root's own directory belong to root`() throws {
        let own = try TemporaryDirectory()
        let handle = try Self.open(own.path)
        try handle.open("file", [.writeOnly, .create], mode: 0o600).close()
        #expect(try handle.status(of: "file").owner == 0)
    }

    @Test func `a third user's file is not used, unless the directory is open to its group`() throws {
        makeFile(directory.path + "/foreign", "x")
        try #require(chown(directory.path + "/foreign", 65532, 65532) == 0)
        for flags: OpenFlags in [.readOnly, .readWrite, [.readWrite, .create]] {
            #expect(throws: Errno.noDeviceOrAddress) {
                let mode: UInt32 = flags.contains(.create) ? 0o600 : 0
                _ = try handle.open("foreign", flags, mode: mode).rawValue
            }
        }
        // The same rule applies if the process is not root's.
        let user = Ownership(of: try FileStatus.of(directory.path), user: 1234)
        for (name, owner) in [("owners", 65534), ("own", 1234), ("roots", 0), ("others", 4321)] {
            let path = "\(directory.path)/\(name)"
            makeFile(path, "x")
            try #require(chown(path, uid_t(owner), 0) == 0)
            #expect(user.accepts(try FileStatus.of(path)) == (name != "others"), "\(name)")
        }
        try #require(chmod(directory.path, 0o770) == 0)
        #expect(throws: Never.self) {
            _ = try Self.open(directory.path).open("foreign", .readOnly).rawValue
        }
    }
}
