// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) final class LockFileTests {
    let directory: TemporaryDirectory
    let handle: Directory

    init() throws {
        directory = try TemporaryDirectory()
        handle = try Directory(opening: directory.path)
    }

    @Test func `a lock file has one holder and is free again after its release`() throws {
        let first = try LockFile.acquire("lock", in: handle, patience: .zero)
        let isHeldTwice = try LockFile.acquire("lock", in: handle, patience: .zero) != nil
        #expect(!isHeldTwice)
        first?.release()
        let isFree = try LockFile.acquire("lock", in: handle, patience: .zero) != nil
        #expect(isFree)
    }

    @Test func `a lock on an unlinked file does not count`() throws {
        let holder = try LockFile.acquire("lock", in: handle, patience: .zero)
        let directoryPath = directory.path
        let box = Locked<Bool?>.Box(nil)
        let wait = expectBlocks {
            guard let handle = try? Directory(opening: directoryPath),
                let lock = try? LockFile.acquire("lock", in: handle, patience: .seconds(10))
            else { return }
            // The locked file must be the one that the path names now.
            let named = try? handle.status(of: "lock").identity
            let held = try? lock.descriptor.status().identity
            box.value.withLock { $0 = named != nil && named == held }
            lock.release()
        }
        try FileManager.default.removeItem(atPath: directory.path + "/lock")
        holder?.release()
        wait()
        #expect(box.value.withLock { $0 } == true)
    }
}
