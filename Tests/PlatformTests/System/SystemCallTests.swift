// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestSupport
import Testing

@testable import Platform

@Suite(.takesTurns) struct SystemCallTests {
    @Test func `an injected fault applies only within its scope`() throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/file"
        _ = try FileDescriptor(opening: path, [.writeOnly, .create])
        SystemCall.withFaults({ $0 == .open ? .error(.inputOutput) : nil }) {
            #expect(throws: Errno.inputOutput) { _ = try FileDescriptor(opening: path, .readOnly) }
        }
        _ = try FileDescriptor(opening: path, .readOnly)
    }

    @Test func `reading a whole file calls open, read and close, and reports errors`() throws {
        let directory = try TemporaryDirectory()
        makeFile(directory.path + "/file", "12345")
        let handle = try Directory(opening: directory.path)
        let seen = Locked<[SystemCall]>([])
        SystemCall.withFaults { call in
            seen.withLock { $0.append(call) }
            return nil
        } _: {
            #expect(throws: Never.self) { _ = try handle.contents(of: "file", count: 5) { _ in true } }
        }
        #expect(seen.withLock { $0 } == [.open, .read, .close])
        for call in [SystemCall.open, .read] {
            SystemCall.withFaults({ $0 == call ? .error(.outOfMemory) : nil }) {
                #expect(throws: Errno.outOfMemory) {
                    _ = try handle.contents(of: "file", count: 5) { _ in true }
                }
            }
        }
    }

    @Test func `an interrupted call is repeated, and a short one continues where it stopped`() throws {
        let directory = try TemporaryDirectory()
        makeFile(directory.path + "/file", "12345")
        let handle = try Directory(opening: directory.path)
        let count = Locked(0)
        try SystemCall.withFaults { call in
            guard call == .read else { return nil }
            let number = count.withLock { count in
                count += 1
                return count
            }
            return number == 1 ? .error(.interrupted) : .short(2)
        } _: {
            let data = try handle.contents(of: "file", count: 5) { _ in true }
            #expect(data.map { Array($0) } == Array("12345".utf8))
        }
        #expect(count.withLock { $0 } == 4)
    }
}
