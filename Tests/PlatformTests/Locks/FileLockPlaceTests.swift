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

    @Test func `without a lock, locking returns false`() throws {
        let place = FileLockPlace()
        #expect(try !place.lock(.shared, patience: .zero))
    }

    @Test func `the first lock that is put in place is the one used, no matter how many more follow`() throws
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

    @Test func `a failure to take the lock is thrown`() throws {
        let place = FileLockPlace()
        place.settle(FileLock(owning: try open("lock")))
        let other = try open("lock")
        #expect(try other.tryLock(.exclusive))
        #expect(throws: Errno.timedOut) { try place.lock(.shared, patience: .zero) }
    }

    @Test func `the lock is released with its place`() throws {
        let file = try open("lock")
        do {
            let place = FileLockPlace()
            place.settle(FileLock(owning: try open("lock")))
            #expect(try place.lock(.exclusive, patience: .zero))
            #expect(try !file.tryLock(.exclusive))
        }
        // Children that other tests start at the same time inherit the descriptor for a moment.
        #expect(try file.tryLock(.exclusive, until: .now + .seconds(60)))
    }
}
