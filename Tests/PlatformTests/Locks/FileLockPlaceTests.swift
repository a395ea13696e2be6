// SPDX-License-Identifier: Apache-2.0

import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct FileLockPlaceTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func open(_ name: String) throws -> FileDescriptor {
        try FileDescriptor(opening: "\(directory.path)/\(name)", [.readWrite, .create])
    }

    @Test func `without a lock nothing is taken, and it says so`() throws {
        let place = FileLockPlace()
        #expect(try !place.lock(.shared, patience: .zero))
    }

    @Test func `the lock that was put there first is the one that is taken, however many come later`() throws
    {
        let place = FileLockPlace()
        place.settle(FileLock(owning: try open("first")))
        place.settle(FileLock(owning: try open("second")))
        #expect(try place.lock(.exclusive, patience: .zero))
        let first = try open("first")
        let second = try open("second")
        #expect(try !first.tryLock(.shared))
        #expect(try second.tryLock(.exclusive))
        place.unlock(.exclusive)
        #expect(try first.tryLock(.exclusive))
    }

    @Test func `what keeps the lock away is told`() throws {
        let place = FileLockPlace()
        place.settle(FileLock(owning: try open("lock")))
        let other = try open("lock")
        #expect(try other.tryLock(.exclusive))
        #expect(throws: Errno.timedOut) { try place.lock(.shared, patience: .zero) }
    }

    @Test func `the lock goes with its place`() throws {
        let file = try open("lock")
        do {
            let place = FileLockPlace()
            place.settle(FileLock(owning: try open("lock")))
            #expect(try place.lock(.exclusive, patience: .zero))
            #expect(try !file.tryLock(.exclusive))
        }
        // Children that other tests start meanwhile have it, too, for a moment.
        #expect(try file.tryLock(.exclusive, until: .now + .seconds(60)))
    }
}
