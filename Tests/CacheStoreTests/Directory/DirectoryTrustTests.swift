// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import TestSupport
import Testing

@testable import CacheStore
@testable import Platform

@Suite(.takesTurns) struct DirectoryTrustTests {
    private func isTrusted(
        _ permissions: UInt32,
        owner: UInt32,
        above: [(permissions: UInt32, owner: UInt32)] = []
    ) -> Bool {
        DirectoryTrust(
            directory: status(permissions, owner: owner),
            above: above.map { status($0.permissions, owner: $0.owner) }
        ).problem(for: 1000) == nil
    }

    private func status(_ permissions: UInt32, owner: UInt32) -> FileStatus {
        var status = stat()
        status.st_mode = S_IFDIR | permissions
        status.st_uid = owner
        return FileStatus(status)
    }

    @Test func `a world-writable directory is refused, whoever owns it`() {
        for owner in [UInt32(1000), 0, 1001] {
            for permissions in [UInt32(0o777), 0o1777, 0o702, 0o2777, 0o703] {
                #expect(!isTrusted(permissions, owner: owner), "\(owner) \(permissions)")
            }
        }
    }

    @Test func `a directory that a group may write or others may read is accepted`() {
        for permissions in [UInt32(0o700), 0o755, 0o770, 0o2770, 0o775, 0o500] {
            #expect(isTrusted(permissions, owner: 1000) && isTrusted(permissions, owner: 0))
        }
    }

    @Test func `another user's directory is refused only if any user could have created it`() {
        #expect(!isTrusted(0o755, owner: 1001, above: [(0o1777, 0)]), "/tmp")
        #expect(!isTrusted(0o2770, owner: 1001, above: [(0o777, 1001)]))
        #expect(!isTrusted(0o755, owner: 1001, above: [(0o755, 1001), (0o1777, 0)]), "his own in /tmp")
        #expect(isTrusted(0o755, owner: 1001, above: [(0o755, 0)]), "/var/cache, /home")
        #expect(isTrusted(0o755, owner: 1001, above: [(0o755, 1001), (0o755, 0)]), "his own in /home")
        #expect(isTrusted(0o755, owner: 1001, above: [(0o755, 1000)]), "this user's own, wherever that is")
        #expect(isTrusted(0o755, owner: 0, above: [(0o1777, 0)]), "root's own")
    }

    @Test func `a store does not open a world-writable directory and creates nothing in it`() throws {
        let place = try TemporaryDirectory()
        let path = place.path + "/cache"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(chmod(path, 0o777) == 0)
        let error = #expect(throws: CacheError.self) { try Store(at: path) }
        #expect(error?.code == .untrusted && error?.reason?.contains("0777") == true)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
        #expect(chmod(path, 0o700) == 0)
        #expect(throws: Never.self) { try Store(at: path) }
    }

    @Test(arguments: ["objects", "entries", "locks", "tmp"])
    func `a world-writable part is refused if all users can reach it`(part: String) throws {
        let fixture = try StoreFixture()
        #expect(chmod(fixture.path + "/" + part, 0o777) == 0)
        #expect(throws: Never.self, "nobody gets there") { try Store(at: fixture.path) }
        #expect(chmod(fixture.path, 0o711) == 0)
        let error = #expect(throws: CacheError.self) { try Store(at: fixture.path) }
        #expect(error?.code == .untrusted && error?.path?.hasSuffix(part) == true)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"))
    func `another user's directory in a world-writable one is refused`() throws {
        let place = try TemporaryDirectory()
        let path = place.path + "/cache"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        #expect(chown(path, 65534, 65534) == 0 && chmod(place.path, 0o1777) == 0)
        let error = #expect(throws: CacheError.self) { try Store(at: path) }
        #expect(error?.code == .untrusted && error?.reason?.contains("65534") == true)
        #expect(chmod(place.path, 0o755) == 0)
        #expect(throws: Never.self) { try Store(at: path) }
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"))
    func `another user's nested directory is as trusted as its outermost one`() throws {
        let place = try TemporaryDirectory()
        let (above, path) = (place.path + "/application", place.path + "/application/data/cache")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        for made in [above, above + "/data", path] {
            #expect(chown(made, 65534, 65534) == 0 && chmod(made, 0o755) == 0)
        }
        #expect(chmod(place.path, 0o1777) == 0)
        let error = #expect(throws: CacheError.self) { try Store(at: path) }
        #expect(error?.code == .untrusted && error?.reason?.contains("65534") == true)
        // As in /home, or in a directory that root has created for the user.
        #expect(chmod(place.path, 0o755) == 0)
        #expect(throws: Never.self) { try Store(at: path) }
        #expect(chmod(place.path, 0o1777) == 0 && chown(above, 0, 0) == 0)
        #expect(throws: Never.self) { try Store(at: path) }
    }
}
